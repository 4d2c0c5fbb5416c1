"""
A worker that trusts its tools: reads an attack's files without a check, and reports the harm.

Each step is a separate process in the work directory, without capabilities, and reports its harms.
A step that is stuck is killed and reported.
"""

import contextlib
import ctypes
import json
import os
import shutil
import signal
import struct
import threading
import time
import unicodedata

# A step that takes longer is stuck, and would delay other calls.
PATIENCE_SECONDS = 1.5
# For a step that uses a processor: until its cost is known.
BUSY_PATIENCE_SECONDS = 20
# More processor time, or memory, than one step may use.
SLOW_SECONDS = 0.7
LARGE_BYTES = 192 << 20
# Between the end of a tool and the reading of its files.
BUSY_SECONDS = 0.3
MAX_MESSAGE_BYTES = 10_000_000
MAX_LINE_BYTES = 4096
MAX_PRINTED_BYTES = 1 << 20
MAX_OUTPUTS_SIZES = 4
# Characters that make what follows run from right to left.
TURNING = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"

# What it reads.
STATUSES = "the statuses"
RESULT = "result.json"
OUTPUTS = "the outputs"
PRINTED = "what it printed"
TREE = "the removal of its tree"

# The harm of each attack, and where it shows. Other harms do not count.
HARMS = {
    "status_flood": ("excess", STATUSES),
    "status_endless_line": ("excess", STATUSES),
    "status_never_opened": ("stuck", STATUSES),
    "status_pipe_replaced": ("secret", STATUSES),
    "status_forged": ("unclean", STATUSES),
    "result_link": ("secret", RESULT),
    "result_hard_link": ("secret", RESULT),
    "result_pipe": ("stuck", RESULT),
    "result_directory": ("crash", RESULT),
    "result_oversized": ("excess", RESULT),
    "result_many_values": ("slow", RESULT),
    "result_deep": ("crash", RESULT),
    "result_strange_values": ("unclean", RESULT),
    "result_torn": ("crash", RESULT),
    "result_empty": ("crash", RESULT),
    "output_link": ("secret", OUTPUTS),
    "output_directory_link": ("secret", OUTPUTS),
    "output_pipe_and_socket": ("stuck", OUTPUTS),
    "output_hard_link": ("secret", OUTPUTS),
    "output_names": ("unclean", OUTPUTS),
    "output_sparse": ("excess", OUTPUTS),
    "output_swapped": ("secret", OUTPUTS),
    "output_growing": ("excess", OUTPUTS),
    "tree_deep": ("crash", TREE),
    "tree_closed": ("crash", TREE),
    "stdout_flood": ("excess", PRINTED),
    "result_printed": ("secret", PRINTED),
    "program_printed": ("secret", PRINTED),
}


def serve(attack, work_dir, target, run):
    """
    Runs the attack, and reads and removes its files as a worker does. The harm is the attack's
    answer.
    """
    worker = NaiveWorker(work_dir, target)
    worker.serve(run)
    evidence = worker.harms.get(HARMS[attack])
    if evidence is not None:
        return {"reached": True, "evidence": evidence}
    others = [f"{where}: {harm}: {text}" for (harm, where), text in worker.harms.items()]
    return {"reached": False, "evidence": "; ".join(others) or "no harm was done"}


class NaiveWorker:
    def __init__(self, work_dir, target):
        self.work_dir = work_dir
        self.target = target
        self.limits = target["limits"]
        # First evidence by harm and place.
        self.harms = {}
        self.lines = []
        self.sizes = {}

    def serve(self, run):
        reading_statuses = start_thread(self.read_statuses)
        reading, writing = os.pipe()
        printed = []
        printing = start_thread(lambda: printed.append(read_all(reading)))
        run(writing)
        os.close(writing)
        output = f"{self.work_dir}/output"
        with contextlib.suppress(OSError):
            self.sizes = {name: os.stat(f"{output}/{name}").st_size for name in os.listdir(output)}
        printing.join(PATIENCE_SECONDS)
        reading_statuses.join(BUSY_SECONDS)
        if reading_statuses.is_alive():
            self.record("stuck", STATUSES, f"the pipe has no writer {BUSY_SECONDS} s after the end")
        self.inspect(PRINTED, printed[0] if printed else b"", MAX_PRINTED_BYTES)
        self.step(STATUSES, self.publish_statuses)
        self.step(STATUSES, self.publish_late_statuses)
        if os.path.lexists(f"{self.work_dir}/{RESULT}"):
            self.step(RESULT, self.publish_result)
        self.step(OUTPUTS, self.publish_outputs)
        self.step(TREE, lambda _report: shutil.rmtree(self.work_dir))

    def record(self, harm, where, text):
        self.harms.setdefault((harm, where), text)

    def inspect(self, where, content, most):
        """Checks content that is about to be published."""
        if self.target["token"].encode() in content:
            self.record("secret", where, f"published {self.target['token']}")
        if len(content) > most:
            self.record("excess", where, f"{len(content):,} bytes, of {most:,}")

    def read_statuses(self):
        with open(f"{self.work_dir}/status.pipe") as pipe:
            self.lines.extend(pipe)

    def publish_statuses(self, report):
        size = sum(len(line) for line in self.lines)
        if size > self.limits["status_bytes"]:
            report("excess", f"{size:,} bytes, of {self.limits['status_bytes']:,}")
        for line in self.lines:
            text = json.loads(line)["status"]
            if len(text) > MAX_LINE_BYTES:
                report("excess", f"a text of {len(text):,} characters")
            report_unclean(report, text)

    def publish_late_statuses(self, report):
        descriptor = os.open("status.pipe", os.O_RDONLY | os.O_NONBLOCK)
        with os.fdopen(descriptor) as pipe:
            for line in pipe:
                report("publish", line)

    def publish_result(self, report):
        with open(RESULT) as file:
            text = file.read()
        if len(text) > MAX_MESSAGE_BYTES:
            report("excess", f"{len(text):,} bytes, of {MAX_MESSAGE_BYTES:,}")
        report("publish", text[:MAX_LINE_BYTES])
        answer = json.dumps(json.loads(text)["result"])
        try:
            json.loads(answer, parse_constant=refuse)
        except ValueError as error:
            report("unclean", f"the answer is no JSON: {error}")

    def publish_outputs(self, report):
        most = MAX_OUTPUTS_SIZES * self.limits["file_size_bytes"]
        total = 0
        for name in os.listdir("output"):
            report_unclean(report, name)
            try:
                with open(f"output/{name}", "rb") as file:
                    content = file.read(most + 1)
            except OSError as error:
                report("crash", f"{name}: {error.strerror}")
                continue
            report("publish", content[:MAX_LINE_BYTES].decode(errors="replace"))
            size = self.sizes.get(name, 0)
            if len(content) > size:
                report("excess", f"{name} had {size:,} bytes and has {len(content):,}")
            total += len(content)
            if total > most:
                report("excess", f"more than {most:,} bytes")
                return

    def step(self, where, go):
        """Runs one step in a child, and records its harms."""
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            with os.fdopen(writing, "w") as reports:
                self.go(go, reports)
            os._exit(0)
        os.close(writing)
        reported = []
        reader = start_thread(lambda: reported.append(read_all(reading)))
        reader.join(PATIENCE_SECONDS)
        deadline = time.monotonic() + BUSY_PATIENCE_SECONDS
        last, spent = 0, processor_seconds(pid)
        while reader.is_alive() and last < spent <= SLOW_SECONDS and time.monotonic() < deadline:
            reader.join(PATIENCE_SECONDS)
            last, spent = spent, processor_seconds(pid)
        if reader.is_alive():
            self.record("stuck", where, f"not done after {PATIENCE_SECONDS} s")
            os.kill(pid, signal.SIGKILL)
            reader.join()
        usage = os.wait4(pid, 0)[2]
        seconds = usage.ru_utime + usage.ru_stime
        if seconds > SLOW_SECONDS or usage.ru_maxrss * 1024 > LARGE_BYTES:
            cost = f"{seconds:.1f} s of processor time and {usage.ru_maxrss >> 10} MiB of memory"
            self.record("slow", where, cost)
        for line in reported[0].splitlines():
            harm, text = json.loads(line)
            if harm == "publish":
                self.inspect(where, text.encode(errors="replace"), MAX_MESSAGE_BYTES)
            else:
                self.record(harm, where, text)

    def go(self, go, reports):
        def report(harm, text):
            print(json.dumps([harm, text]), file=reports, flush=True)

        os.chdir(self.work_dir)
        drop_capabilities()
        try:
            go(report)
        except Exception as error:
            report("crash", f"{type(error).__name__}: {str(error)[:200]}")


def processor_seconds(pid):
    """Processor time of a process; clock_getcpuclockid(3), as not every arena has a /proc."""
    cpuclock_sched = 2
    return time.clock_gettime(~pid << 3 | cpuclock_sched)


def report_unclean(report, text):
    for character in text:
        if unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") or character in TURNING:
            report("unclean", f"the character U+{ord(character):04X}")
            return


def refuse(name):
    raise ValueError(f"{name} is no number")


def drop_capabilities():
    """capset(2): none of any kind, as a worker has none."""
    version = 0x20080522
    ctypes.CDLL(None).capset(struct.pack("Ii", version, 0), struct.pack("6I", *[0] * 6))


def start_thread(go):
    thread = threading.Thread(target=go, daemon=True)
    thread.start()
    return thread


def read_all(descriptor):
    with os.fdopen(descriptor, "rb") as file:
        return file.read()
