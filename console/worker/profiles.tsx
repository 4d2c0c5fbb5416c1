/** The profiles: network, limits, and what this host does not enforce. */
import type { VNode } from "preact";
import type { ProfileView } from "../../worker/console/api.ts";
import { Facts } from "../ui/facts.tsx";
import { LimitsTable, Unenforced } from "../ui/limits.tsx";

export function Profiles({ profiles }: { readonly profiles: readonly ProfileView[] }): VNode {
  return (
    <section class="card stack tight" aria-labelledby="profiles-title">
      <h2 id="profiles-title">Profiles</h2>
      {profiles.map((profile) => (
        <details key={profile.name}>
          <summary>
            <span class="name">{profile.name}</span>{" "}
            <span class="quiet">
              {profile.backend} · network {profile.network}
              {profile.unenforced.length > 0 && ` · ${profile.unenforced.length} not enforced`}
            </span>
          </summary>
          <div class="stack tight">
            <Facts facts={{ Backend: profile.backend, Network: profile.network }} />
            <LimitsTable limits={profile.limits} caption={`Limits of ${profile.name}`} />
            <Unenforced names={profile.unenforced} />
          </div>
        </details>
      ))}
    </section>
  );
}
