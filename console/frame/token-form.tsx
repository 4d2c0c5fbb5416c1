/** Asks for the token of the console. */
import type { VNode } from "preact";
import { useId, useState } from "preact/hooks";
import { Notice } from "../ui/notice.tsx";

export function TokenForm(properties: {
  readonly problem: string | null;
  readonly onToken: (token: string) => void;
}): VNode {
  const { problem, onToken } = properties;
  const [token, setToken] = useState("");
  const id = useId();
  const submit = (event: Event): void => {
    event.preventDefault();
    onToken(token.trim());
  };
  return (
    <form class="card narrow stack" onSubmit={submit}>
      <h1 tabIndex={-1}>Sign in</h1>
      <p id={`${id}-hint`}>The worker logs a link with the token of its console when it starts.</p>
      {problem !== null && <Notice kind="problem">{problem}</Notice>}
      <label class="field" htmlFor={id}>
        <span class="label">Token</span>
        <input
          id={id}
          type="password"
          autocomplete="off"
          spellcheck={false}
          required
          aria-describedby={`${id}-hint`}
          value={token}
          onInput={(event) => setToken(event.currentTarget.value)}
        />
      </label>
      <button class="primary" type="submit">
        Sign in
      </button>
    </form>
  );
}
