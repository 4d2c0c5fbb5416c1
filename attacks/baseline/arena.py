"""
Plants canaries in a scratch system, and runs one attack there without protection.

worker/doctor/attacks/baseline.ts starts it in a sandbox with its own namespaces and all capabilities
in them. It reads its order, one JSON object, from descriptor 3. Its last line is the attack's
answer.
"""

import ctypes
import json
import os
import resource
import runpy
import select
import signal
import socket
import struct
import sys
import traceback

TOOLS = "/arena/tools"
SCRATCH = "/scratch"
WORK_BASE = SCRATCH + "/work"
WORK_DIR = WORK_BASE + "/call"
TEMPLATE_DIR = WORK_BASE + "/template"
SECRET = SCRATCH + "/secret"
SOCKET = SCRATCH + "/socket"
ABSTRACT = "str-attack-baseline"

# Seconds that one call of an attack may take, on a host that is busy with other things.
PATIENCE_SECONDS = 60
# Multiple of each limit that an attack's processes get; attacks take at most twice a limit.
HEADROOM = 4
# As much as a pipe holds, so that writing an answer never waits.
MAX_ANSWER_BYTES = 60_000
# Flags of unshare(2).
NEW_MOUNTS, NEW_PIDS = 0x0002_0000, 0x2000_0000
MAX_QUESTION_BYTES = 16_384
HTTP_PORT = 80
DNS_PORT = 53
PROXY_PORT = 3128
# A proxy of a baseline waits for ever, so that attacks on its patience need not wait long.
HEADER_SECONDS = 1


def main():
    with os.fdopen(3) as file:
        order = json.load(file)
    target = plant(order)
    answer = None
    for number in range(1, order["rounds"] + 1):
        answer = perform(order, {**target, "round": number})
    print(json.dumps(answer), flush=True)
    # The sandbox's first command ends, and with it everything that the attack left.
    os._exit(0)


def perform(order, target):
    """One call: the answer of the program, or of the naive worker."""

    def run(stdout=None):
        return run_program(order["id"], target, stdout, order.get("baseline") == "naive-template")

    if order.get("baseline") == "naive-worker":
        sys.path.insert(0, os.path.dirname(__file__))
        import naive_worker

        return naive_worker.serve(order["id"], WORK_DIR, target, run)
    # Nobody reads statuses, but they can be written.
    status_pipe = os.open(WORK_DIR + "/status.pipe", os.O_RDWR)
    answer, status = run()
    os.close(status_pipe)
    return answer or {"reached": False, "evidence": f"no answer; exit status {status}"}


def run_program(attack, target, stdout=None, by_template=False):
    """
    Runs the program in a child, with its standard output at a descriptor or nowhere.
    By a template, that child imports the program, and a child of it calls it.
    Returns its answer, or None, and its exit status, negative for a signal.
    """
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        try:
            become_tool(target["limits"], stdout)
            os.chdir(TEMPLATE_DIR if by_template else WORK_DIR)
            program = runpy.run_path(f"{TOOLS}/{attack}.py", run_name=attack)
            if by_template:
                become_naive_child()
            os.write(writing, json.dumps(program["attack"](target)).encode()[:MAX_ANSWER_BYTES])
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    os.close(writing)
    status = end_of(pid)
    os.set_blocking(reading, False)
    try:
        answer = os.read(reading, MAX_ANSWER_BYTES)
    except BlockingIOError:
        # A process that it left has the other end.
        answer = b""
    os.close(reading)
    return (json.loads(answer) if answer else None), status


def become_naive_child():
    """
    Continues in a child with its own namespaces, in which everything of its parent is mounted.
    """
    if ctypes.CDLL(None).unshare(NEW_MOUNTS | NEW_PIDS) != 0:
        raise OSError("no namespaces for a child")
    pid = os.fork()
    if pid != 0:
        os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    os.chdir(WORK_DIR)


def become_tool(limits, stdout):
    sys.path.insert(0, TOOLS)
    nothing = os.open("/dev/null", os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing if stdout is None else stdout, 1)
    for kind, most in (
        (resource.RLIMIT_AS, limits["memory_bytes"]),
        (resource.RLIMIT_CPU, limits["cpu_seconds"]),
        (resource.RLIMIT_FSIZE, limits["file_size_bytes"]),
        (resource.RLIMIT_NOFILE, limits["open_files"]),
        (resource.RLIMIT_NPROC, limits["processes"]),
    ):
        # Beyond the soft limit there is room, for what tries to raise it.
        resource.setrlimit(kind, (HEADROOM * most, 2 * HEADROOM * most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def end_of(pid):
    """Exit status of a process, which is killed after PATIENCE_SECONDS."""
    process = os.pidfd_open(pid)
    if not select.select([process], [], [], PATIENCE_SECONDS)[0]:
        signal.pidfd_send_signal(process, signal.SIGKILL)
    os.close(process)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def plant(order):
    token, metadata, variable = order["token"], order["metadata_address"], order["variable"]
    for name in (SCRATCH + "/open", TEMPLATE_DIR, WORK_DIR + "/input", WORK_DIR + "/output"):
        os.makedirs(name)
    os.mkfifo(WORK_DIR + "/status.pipe")
    for path in (
        SECRET,
        "/root/.ssh/id_ed25519",
        "/home/somebody/.netrc",
        "/etc/passwd",
        "/etc/shadow",
        "/etc/machine-id",
        "/etc/hosts",
        "/etc/resolv.conf",
        "/etc/nsswitch.conf",
    ):
        put(path, token)
    for path in (WORK_BASE + "/victim/data", "/tmp/victim", "/dev/shm/victim"):
        put(path, "victim " + token)
    # Left open, as by a program that does not close its files before it starts others.
    os.open(SECRET, os.O_RDONLY)
    add_address("lo", metadata)
    loopback = listen(socket.AF_INET, ("127.0.0.1", 0))
    port = loopback.getsockname()[1]
    listed = listen(socket.AF_INET, ("127.0.0.1", 0))
    datagrams = listen_to_datagrams("127.0.0.1")
    listed_port, datagram_port = listed.getsockname()[1], datagrams.getsockname()[1]
    serve_listed(order, listed, datagrams)
    serve_proxy(listen(socket.AF_INET, ("127.0.0.1", PROXY_PORT)))
    sys.path.insert(0, TOOLS)
    from support.listed import victim_port, victim_socket

    serve(
        token,
        [
            loopback,
            listen(socket.AF_INET, ("0.0.0.0", victim_port(token))),
            listen(socket.AF_UNIX, "\0" + victim_socket(token)),
            listen(socket.AF_INET, (metadata, HTTP_PORT)),
            listen(socket.AF_UNIX, SOCKET),
            listen(socket.AF_UNIX, "\0" + ABSTRACT),
        ],
        [listen_to_datagrams(address, DNS_PORT) for address in ("127.0.0.1", metadata)],
    )
    return {
        "token": token,
        "secret_file": SECRET,
        "open_directory": SCRATCH + "/open",
        "sibling_pid": start_sibling(token, variable),
        "worker_pid": os.getpid(),
        "work_base": WORK_BASE,
        "variable": variable,
        "loopback_port": port,
        "listed_port": listed_port,
        "datagram_port": datagram_port,
        "unlisted_port": port,
        "rebinding_name": order["rebinding_name"],
        "header_seconds": HEADER_SECONDS,
        "max_connections_in_all": order["max_connections_in_all"],
        "listed_name": order["listed_name"],
        "unlisted_name": order["unlisted_name"],
        "max_connections": order["max_connections"],
        "metadata_address": metadata,
        # Some clouds have it there. 127.0.0.1 answers as well.
        "name_servers": [metadata],
        "socket_path": SOCKET,
        "abstract_socket": ABSTRACT,
        "namespaces": own_namespaces(),
        "limits": order["limits"],
    }


def own_namespaces():
    try:
        return {kind: os.readlink(f"/proc/self/ns/{kind}") for kind in ("user", "mnt", "pid", "ipc", "uts", "cgroup")}
    except OSError:
        return {}  # A /proc that is masked.


def put(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)


def listen(family, address):
    listening = socket.socket(family)
    listening.bind(address)
    listening.listen()
    return listening


def listen_to_datagrams(address, port=0):
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    datagrams.bind((address, port))
    return datagrams


def serve(token, streams, names):
    """A process that answers connections with the token, and queries with "no such name"."""
    if os.fork() == 0:
        while True:
            for ready in select.select([*streams, *names], [], [])[0]:
                if ready in names:
                    query, peer = ready.recvfrom(512)
                    ready.sendto(query[:2] + b"\x81\x83" + query[4:], peer)
                else:
                    with ready.accept()[0] as connection:
                        connection.sendall(token.encode())
    for served in (*streams, *names):
        served.close()


def serve_listed(order, listed, datagrams):
    """
    A process that answers connections by the name that they ask for, and datagrams with the token.
    """
    token = order["token"].encode()
    answers = {order["unlisted_name"].encode(): token, order["listed_name"].encode(): b"listed"}
    if os.fork() == 0:
        while True:
            for ready in select.select([listed, datagrams], [], [])[0]:
                if ready is datagrams:
                    datagrams.sendto(token, datagrams.recvfrom(512)[1])
                else:
                    with listed.accept()[0] as connection:
                        connection.sendall(answer_by_name(connection, answers))
    listed.close()
    datagrams.close()


def serve_proxy(listening):
    """A process that connects to what it is asked for."""
    if os.fork() == 0:
        sys.path.insert(0, os.path.dirname(__file__))
        import naive_proxy

        naive_proxy.serve(listening)
    listening.close()


def answer_by_name(connection, answers):
    """A redirection, or the answer to the first known name; nothing to a question without any."""
    question = b""
    while len(question) < MAX_QUESTION_BYTES:
        received = connection.recv(4096)
        question += received
        place = question.partition(b"/?to=")[2].split(b" ")[0]
        if place:
            return b"HTTP/1.1 302 Found\r\nLocation: " + place + b"\r\n\r\n"
        for name, answer in answers.items():
            if name in question:
                return answer
        if not received:
            break
    return b""


def start_sibling(token, variable):
    pid = os.fork()
    if pid == 0:
        script = "secret=$0; while :; do sleep 1; done"
        os.execve("/bin/sh", ["sh", "-c", script, token], {variable: token, "PATH": "/usr/bin:/bin"})
    return pid


def add_address(interface, address):
    """Gives an interface one more IPv4 address: RTM_NEWADDR, see rtnetlink(7)."""
    new_address, flags, local = 20, 0x0405, 2
    body = struct.pack("BBBBI", socket.AF_INET, 32, 0, 0, socket.if_nametoindex(interface))
    body += struct.pack("HH4s", 8, local, socket.inet_aton(address))
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as netlink:
        netlink.send(struct.pack("IHHII", 16 + len(body), new_address, flags, 1, 0) + body)
        error = -struct.unpack_from("i", netlink.recv(4096), 16)[0]
    if error != 0:
        raise OSError(error, os.strerror(error))


if __name__ == "__main__":
    main()
