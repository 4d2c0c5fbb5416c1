/**
 * bubblewrap's options, profile by profile, to be read by a human.
 */
import { describe, expect, test } from "vitest";
import { type BwrapOptions, bwrapOptions } from "../../../../worker/sandbox/bubblewrap/argv.ts";
import { encodeArgs } from "../../../../worker/sandbox/bubblewrap/process.ts";
import { builtInProfiles } from "../../../../worker/sandbox/profile.ts";

function options(profile: string, changes: Partial<BwrapOptions> = {}): readonly string[] {
  return bwrapOptions({
    profile: builtInProfiles.get(profile)!,
    proc: "fresh",
    limitsNested: true,
    namesHost: true,
    systemDirectories: [
      { path: "/bin", linkTarget: "usr/bin" },
      { path: "/lib", linkTarget: "usr/lib" },
      { path: "/lib64", linkTarget: undefined },
    ],
    workDir: "/srv/work/worker-1/call-1",
    mounts: [
      { source: "/srv/tools", target: "/tools/python" },
      { source: "/srv/runner", target: "/sandbox/runner" },
    ],
    devices: [],
    environment: new Map([["PATH", "/usr/bin"]]),
    ...changes,
  });
}

/** One option and its values a line. */
function lines(list: readonly string[]): string {
  return list.join(" ").replace(/ (?=--[a-z])/g, "\n");
}

describe("a writable directory of the host", () => {
  test("is bound before the root becomes read-only", () => {
    const cache = { source: "/srv/cache", target: "/sandbox/cache" };
    const list = lines(options("restrictive", { writable: [cache] })).split("\n");
    expect(list.slice(list.indexOf("--bind /srv/cache /sandbox/cache"))).toEqual([
      "--bind /srv/cache /sandbox/cache",
      "--bind /srv/work/worker-1/call-1 /sandbox/work",
      "--chdir /sandbox/work",
      "--remount-ro /",
    ]);
  });
});

describe("the sandbox of the restrictive profile", () => {
  test("has no network and of /etc what programs cannot do without", () => {
    expect(lines(options("restrictive"))).toMatchInlineSnapshot(`
      "--unshare-all
      --unshare-user
      --disable-userns
      --uid 65534
      --gid 65534
      --cap-drop ALL
      --new-session
      --die-with-parent
      --hostname sandbox
      --clearenv
      --setenv PATH /usr/bin
      --ro-bind /usr /usr
      --symlink usr/bin /bin
      --symlink usr/lib /lib
      --ro-bind /lib64 /lib64
      --ro-bind-try /etc/ld.so.cache /etc/ld.so.cache
      --ro-bind-try /etc/alternatives /etc/alternatives
      --ro-bind-try /etc/localtime /etc/localtime
      --proc /proc
      --remount-ro /proc
      --tmpfs /dev
      --dev-bind /dev/null /dev/null
      --dev-bind /dev/zero /dev/zero
      --dev-bind /dev/full /dev/full
      --dev-bind /dev/random /dev/random
      --dev-bind /dev/urandom /dev/urandom
      --dev-bind /dev/tty /dev/tty
      --symlink /proc/self/fd /dev/fd
      --symlink /proc/self/fd/0 /dev/stdin
      --symlink /proc/self/fd/1 /dev/stdout
      --symlink /proc/self/fd/2 /dev/stderr
      --size 67108864
      --tmpfs /dev/shm
      --remount-ro /dev
      --size 67108864
      --tmpfs /tmp
      --ro-bind /srv/tools /tools/python
      --ro-bind /srv/runner /sandbox/runner
      --bind /srv/work/worker-1/call-1 /sandbox/work
      --chdir /sandbox/work
      --remount-ro /"
    `);
  });
});

describe("the sandbox of the standard profile", () => {
  test("has a network of its own, with certificates", () => {
    expect(lines(options("standard"))).toMatchInlineSnapshot(`
      "--unshare-all
      --unshare-user
      --disable-userns
      --uid 65534
      --gid 65534
      --cap-drop ALL
      --new-session
      --die-with-parent
      --hostname sandbox
      --clearenv
      --setenv PATH /usr/bin
      --ro-bind /usr /usr
      --symlink usr/bin /bin
      --symlink usr/lib /lib
      --ro-bind /lib64 /lib64
      --ro-bind-try /etc/ld.so.cache /etc/ld.so.cache
      --ro-bind-try /etc/alternatives /etc/alternatives
      --ro-bind-try /etc/localtime /etc/localtime
      --ro-bind-try /etc/services /etc/services
      --ro-bind-try /etc/protocols /etc/protocols
      --ro-bind-try /etc/ssl/certs /etc/ssl/certs
      --ro-bind-try /etc/ssl/openssl.cnf /etc/ssl/openssl.cnf
      --ro-bind-try /etc/ca-certificates /etc/ca-certificates
      --ro-bind-try /etc/pki/tls/certs /etc/pki/tls/certs
      --proc /proc
      --remount-ro /proc
      --tmpfs /dev
      --dev-bind /dev/null /dev/null
      --dev-bind /dev/zero /dev/zero
      --dev-bind /dev/full /dev/full
      --dev-bind /dev/random /dev/random
      --dev-bind /dev/urandom /dev/urandom
      --dev-bind /dev/tty /dev/tty
      --symlink /proc/self/fd /dev/fd
      --symlink /proc/self/fd/0 /dev/stdin
      --symlink /proc/self/fd/1 /dev/stdout
      --symlink /proc/self/fd/2 /dev/stderr
      --size 268435456
      --tmpfs /dev/shm
      --remount-ro /dev
      --size 268435456
      --tmpfs /tmp
      --ro-bind /srv/tools /tools/python
      --ro-bind /srv/runner /sandbox/runner
      --bind /srv/work/worker-1/call-1 /sandbox/work
      --chdir /sandbox/work
      --remount-ro /"
    `);
  });
});

describe("the sandbox of the permissive profile", () => {
  test("reads the host's /etc and has a /var of its own", () => {
    expect(lines(options("permissive"))).toMatchInlineSnapshot(`
      "--unshare-all
      --share-net
      --unshare-user
      --disable-userns
      --uid 65534
      --gid 65534
      --cap-drop ALL
      --new-session
      --die-with-parent
      --hostname sandbox
      --clearenv
      --setenv PATH /usr/bin
      --ro-bind /usr /usr
      --symlink usr/bin /bin
      --symlink usr/lib /lib
      --ro-bind /lib64 /lib64
      --ro-bind /etc /etc
      --ro-bind-try /run/systemd/resolve /run/systemd/resolve
      --proc /proc
      --remount-ro /proc
      --dev /dev
      --size 1073741824
      --tmpfs /dev/shm
      --remount-ro /dev
      --size 1073741824
      --tmpfs /tmp
      --size 1073741824
      --tmpfs /var
      --ro-bind /srv/tools /tools/python
      --ro-bind /srv/runner /sandbox/runner
      --bind /srv/work/worker-1/call-1 /sandbox/work
      --chdir /sandbox/work
      --remount-ro /"
    `);
  });
});

/** What every sandbox has of the host's devices. */
const harmlessDevices = ["null", "zero", "full", "random", "urandom", "tty"].map(
  (name) => `/dev/${name}`,
);

describe("every sandbox", () => {
  test.each([...builtInProfiles.keys()])("of profile %s gives up all it can give up", (profile) => {
    const list = options(profile);
    for (const option of [
      "--unshare-all",
      "--unshare-user",
      "--disable-userns",
      "--new-session",
      "--die-with-parent",
      "--clearenv",
    ]) {
      expect(list).toContain(option);
    }
    expect(lines(list)).toContain("\n--cap-drop ALL\n");
    expect(lines(list)).toContain("\n--uid 65534\n--gid 65534\n");
    expect(list.slice(-2)).toEqual(["--remount-ro", "/"]);
  });

  test.each([...builtInProfiles.keys()])(
    "of profile %s sees nothing of /proc but a new one",
    (profile) => {
      expect(lines(options(profile))).toContain("\n--proc /proc\n");
      const withoutProc = lines(options(profile, { proc: "empty" }));
      expect(withoutProc).not.toContain("--proc /proc");
      expect(withoutProc).toContain("\n--tmpfs /proc\n--remount-ro /proc\n");
    },
  );

  test.each([...builtInProfiles.keys()])(
    "of profile %s has the host's name where it can have none of its own, and is else the same",
    (profile) => {
      const named = lines(options(profile));
      expect(lines(options(profile, { namesHost: false }))).toBe(
        named.replace("--hostname sandbox\n", ""),
      );
      expect(named).toContain("\n--hostname sandbox\n");
    },
  );

  test.each([...builtInProfiles])(
    "of profile %s bounds each memory file system",
    (name, { limits }) => {
      const list = options(name);
      const tmpfs = list.flatMap((option, index) => (option === "--tmpfs" ? [index] : []));
      // That of the devices becomes read-only before anything of a tool runs.
      const bounded = tmpfs.filter((index) => list[index + 1] !== "/dev");
      for (const index of bounded) {
        expect(list.slice(index - 2, index)).toEqual(["--size", String(limits.tmpBytes)]);
      }
      expect(bounded.map((index) => list[index + 1])).toEqual(
        name === "permissive" ? ["/dev/shm", "/tmp", "/var"] : ["/dev/shm", "/tmp"],
      );
      expect(lines(list)).toContain("\n--remount-ro /dev\n");
    },
  );

  test.each([...builtInProfiles.keys()])(
    "of profile %s can write to its work directory alone",
    { tags: "promise-S8" },
    (profile) => {
      const list = options(profile);
      const writable = list.flatMap((option, index) =>
        option === "--bind" || option === "--bind-try" || option === "--dev-bind"
          ? [list.slice(index + 1, index + 3)]
          : [],
      );
      const others = writable.filter(([source]) => !harmlessDevices.includes(source!));
      expect(others).toEqual([["/srv/work/worker-1/call-1", "/sandbox/work"]]);
    },
  );

  test("mounts what it is asked to in order, after the tmpfs that could cover it", () => {
    const list = options("permissive", {
      mounts: [
        { source: "/a", target: "/var/a" },
        { source: "/b", target: "/var/a/b" },
      ],
    });
    const places = ["/var", "/var/a", "/var/a/b"].map((target) => list.lastIndexOf(target));
    expect(places).toEqual(places.toSorted((a, b) => a - b));
    expect(places[0]).toBeGreaterThan(0);
  });

  test("has the devices it is asked to, before /dev becomes read-only", () => {
    const devices = [{ source: "/dev/nvidia0", path: "/dev/gpu" }];
    for (const [profile, made] of [
      ["restrictive", "--tmpfs /dev"],
      ["permissive", "--dev /dev"],
    ] as const) {
      const list = lines(options(profile, { devices })).split("\n");
      const device = list.indexOf("--dev-bind /dev/nvidia0 /dev/gpu");
      expect(list).toContain(made);
      expect(list.indexOf(made)).toBeLessThan(device);
      expect(list.indexOf("--remount-ro /dev")).toBeGreaterThan(device);
    }
  });

  test("has an environment of what it is given, whatever that looks like", () => {
    const environment = new Map([
      ["PATH", "/usr/bin"],
      ["EMPTY", ""],
      ["LOOKS_LIKE", "--share-net"],
    ]);
    const list = options("restrictive", { environment });
    const cleared = list.indexOf("--clearenv");
    expect(list.slice(cleared, cleared + 10)).toEqual([
      "--clearenv",
      ...["--setenv", "PATH", "/usr/bin"],
      ...["--setenv", "EMPTY", ""],
      ...["--setenv", "LOOKS_LIKE", "--share-net"],
    ]);
  });
});

describe("options on their way to bubblewrap", () => {
  test("end with a NUL each, so that blanks and newlines are nothing special", () => {
    expect(encodeArgs(["--setenv", "A", "b c\nd", "--hostname", ""])).toBe(
      "--setenv\0A\0b c\nd\0--hostname\0\0",
    );
  });
});
