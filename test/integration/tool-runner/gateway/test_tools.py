"""The calls of other tools, against a worker that a test plays on the other end of a socket pair."""

import asyncio
import base64
import faulthandler
import json
import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import threading
import unittest
import unittest.mock

from secure_tool_runtime import ToolCallError, ToolContext, Tools, gateway, tools
from secure_tool_runtime.facade import ToolContextFacade
from secure_tool_runtime.gateway.messages import REQUEST_MAX_BYTES

_WAIT_SECONDS = 20


class Worker:
    """The worker's end: it answers as the test says, in a thread of its own."""

    def __init__(self, end: socket.socket) -> None:
        end.settimeout(_WAIT_SECONDS)
        self.end = end
        self.lines = end.makefile("rb")

    def read(self) -> dict:
        line = self.lines.readline()
        return json.loads(line) if line else {}

    def send(self, message: dict) -> None:
        self.end.sendall(json.dumps(message).encode() + b"\n")

    def respond(self, request: dict, payload: dict) -> None:
        self.send({"type": "response", "id": request["id"], "payload": payload})

    def fail(self, request: dict, **payload: object) -> None:
        self.send({"type": "error", "id": request["id"], "payload": payload})


def result_of(request: dict) -> dict:
    return {"structured": {"got": request["payload"].get("args")}, "artifacts": []}


def nested(levels: int) -> list:
    made: list = []
    for _ in range(levels - 1):
        made = [made]
    return made


class GatewayTest(unittest.TestCase):
    def setUp(self) -> None:
        faulthandler.dump_traceback_later(2 * _WAIT_SECONDS, exit=True)
        self.addCleanup(faulthandler.cancel_dump_traceback_later)
        own, other = socket.socketpair()
        self.worker = Worker(other)
        self.addCleanup(own.close)
        self.addCleanup(other.close)
        self.addCleanup(self.worker.lines.close)
        self.descriptor = own.fileno()
        gateway.of_call = (self.descriptor, os.getpid(), 8)
        gateway.tools._gateway = gateway.tools._Gateway()
        self.addCleanup(setattr, gateway, "of_call", None)

    def played(self, play) -> None:
        """Plays the worker from now on, to the end of the test."""
        failures = []

        def run() -> None:
            try:
                play(self.worker)
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=run)
        thread.start()

        def join() -> None:
            thread.join()
            self.assertEqual(failures, [])

        self.addCleanup(join)

    def answered(self, payload: dict) -> list:
        """Answers one request with a payload. Returns where the request will be."""
        requests = []

        def play(worker: Worker) -> None:
            requests.append(worker.read())
            worker.respond(requests[0], payload)

        self.played(play)
        return requests


class Operations(GatewayTest):
    def test_a_call_returns_what_the_tool_returned_and_its_artifacts(self) -> None:
        artifact = {"filename": "a.txt", "version": 1, "mimeType": "text/plain", "sizeBytes": 3}
        requests = self.answered({"structured": {"rows": [1]}, "artifacts": [artifact]})
        result = tools.sync.call("sales:query", {"region": "W\ud800é"})
        self.assertEqual(result, {"rows": [1]})
        self.assertEqual(
            result.artifacts,
            [{"filename": "a.txt", "version": 1, "mime_type": "text/plain", "size_bytes": 3}],
        )
        payload = {"id": "sales:query", "args": {"region": "W\ud800é"}}
        self.assertEqual(requests, [{"type": "run_tool", "id": requests[0]["id"], "payload": payload}])

    def test_a_call_may_be_awaited(self) -> None:
        requests = self.answered({"structured": {"rows": []}, "artifacts": []})

        async def run() -> dict:
            return await tools.call("echo")

        self.assertEqual(asyncio.run(run()), {"rows": []})
        self.assertEqual(requests[0]["payload"], {"id": "echo", "args": {}})

    def test_a_tool_is_an_attribute_of_its_namespace_or_of_the_tools(self) -> None:
        def play(worker: Worker) -> None:
            for expected in ("sales:query", "echo", "sales:query"):
                request = worker.read()
                self.assertEqual(request["payload"], {"id": expected, "args": {"self": 1}})
                worker.respond(request, {"structured": {}, "artifacts": []})

        self.played(play)
        arguments = {"self": 1}
        tools.sync.sales.query(**arguments)
        tools.sync.echo(**arguments)

        async def run() -> None:
            await tools.sales.query(**arguments)

        asyncio.run(run())
        for wrong in (lambda: tools.a.b.c, lambda: tools._private, lambda: tools.sync.a.__len__):
            self.assertRaises(AttributeError, wrong)

    def test_a_search_finds_summaries(self) -> None:
        summary = {"id": "a:b", "name": "b", "namespace": "a", "shortDescription": "B", "tags": []}
        requests = self.answered({"results": [summary]})
        found = tools.sync.search("convert csv", limit=5)
        self.assertEqual(
            found, [{"id": "a:b", "name": "b", "namespace": "a", "short_description": "B", "tags": []}]
        )
        self.assertEqual(requests[0]["type"], "search_tools")
        self.assertEqual(requests[0]["payload"], {"query": "convert csv", "limit": 5})

    def test_namespaces_descriptions_and_examples_are_asked_for(self) -> None:
        example = {"description": "d", "args": {"resultHint": 1}, "resultHint": "h"}
        renamed = {"description": "d", "args": {"resultHint": 1}, "result_hint": "h"}
        doc = {"id": "b", "name": "b", "namespace": "", "summary": "B"}

        def play(worker: Worker) -> None:
            for kind, payload, answer in (
                ("list_namespaces", {}, {"namespaces": ["a"]}),
                ("describe_tool", {"id": "b", "level": "full"}, {**doc, "examples": [example]}),
                ("describe_tool", {"id": "b", "level": "summary"}, doc),
                ("list_tool_examples", {"id": "b", "max": 2}, {"examples": [example]}),
            ):
                request = worker.read()
                self.assertEqual((request["type"], request["payload"]), (kind, payload))
                worker.respond(request, answer)

        self.played(play)

        async def run() -> None:
            self.assertEqual(await tools.namespaces(), ["a"])
            self.assertEqual(await tools.describe("b"), {**doc, "examples": [renamed]})
            self.assertEqual(await tools.describe("b", level="summary"), doc)
            self.assertEqual(await tools.examples("b", max=2), [renamed])

        asyncio.run(run())

    def test_a_chain_has_the_results_of_its_steps(self) -> None:
        created = {"filename": "f", "version": 0, "mimeType": "m", "sizeBytes": 1}
        steps = [
            {"toolId": "a:b", "structured": {"x": 1}, "artifacts": [created]},
            {"toolId": "c", "structured": {"y": 2}, "artifacts": []},
        ]
        requests = self.answered({"structured": {"y": 2}, "artifacts": [], "stepResults": steps})
        last = tools.sync.chain([{"tool": "a:b", "args": {"q": 1}}, {"tool": "c", "use_previous": True}])
        self.assertEqual(last, {"y": 2})
        self.assertEqual([step["tool"] for step in last.steps], ["a:b", "c"])
        self.assertEqual(last.steps[0]["artifacts"][0]["mime_type"], "m")
        self.assertEqual(
            requests[0]["payload"]["steps"],
            [
                {"toolId": "a:b", "args": {"q": 1}, "usePrevious": False},
                {"toolId": "c", "args": {}, "usePrevious": True},
            ],
        )

    def test_an_artifact_is_loaded_in_pieces_of_one_version(self) -> None:
        content = os.urandom(1_300_000)
        asked = []

        def play(worker: Worker) -> None:
            offset = 0
            while offset < len(content):
                request = worker.read()
                members = request["payload"]
                asked.append(members.get("version"))
                piece = content[members["offset"] : members["offset"] + members["length"]]
                self.assertEqual(members["offset"], offset)
                self.assertLessEqual(members["length"], 512 * 1024)
                offset += len(piece)
                answer = {"content": base64.b64encode(piece).decode(), "version": 4}
                worker.respond(request, {**answer, "mimeType": "m", "sizeBytes": len(content)})

        self.played(play)
        self.assertEqual(tools.sync.load_artifact("report.pdf"), content)
        self.assertEqual(asked, [None, 4, 4])

    def test_an_empty_artifact_is_one_piece(self) -> None:
        requests = self.answered({"content": "", "version": 0, "mimeType": "m", "sizeBytes": 0})
        self.assertEqual(tools.sync.load_artifact("empty", version=0), b"")
        self.assertEqual(requests[0]["payload"]["version"], 0)

    def test_an_error_says_what_the_worker_says(self) -> None:
        step = {"toolId": "a", "error": {"code": "TOOL_ERROR", "message": "m", "retryable": False}}

        def play(worker: Worker) -> None:
            said = {"error": "no", "code": "NOT_ALLOWED", "retryable": True, "op": "resolve"}
            worker.fail(worker.read(), **said, data={"a": 1}, stepResults=[step])

        self.played(play)
        with self.assertRaises(ToolCallError) as raised:
            tools.sync.call("a")
        for error in (raised.exception, pickle.loads(pickle.dumps(raised.exception))):
            said = (str(error), error.code, error.retryable, error.op, error.data)
            self.assertEqual(said, ("no", "NOT_ALLOWED", True, "resolve", {"a": 1}))
            self.assertEqual(error.steps, [{"tool": "a", "error": step["error"]}])

    def test_mistakes_reach_no_worker(self) -> None:
        sync = tools.sync
        for error, mistake in (
            (TypeError, lambda: sync.call(1)),
            (TypeError, lambda: sync.call("a", [1])),
            (TypeError, lambda: sync.call("a", {"a": object()})),
            (ValueError, lambda: sync.call("a", {"a": float("nan")})),
            (TypeError, lambda: sync.chain([{"tool": "a", "usePrevious": True}])),
            (TypeError, lambda: sync.chain([{}])),
            (TypeError, lambda: sync.search("q", limit=True)),
            (ValueError, lambda: sync.search("q", limit=-1)),
            (ValueError, lambda: sync.describe("a", level="all")),
            (TypeError, lambda: sync.load_artifact("a", version="latest")),
        ):
            self.assertRaises(error, mistake)
        with self.assertRaises(ToolCallError) as raised:
            sync.call("a", {"a": "x" * REQUEST_MAX_BYTES})
        self.assertEqual(raised.exception.code, "INVALID_REQUEST")
        refused = "The request has more than the %s that are accepted"
        for what, args in (
            ("250000 values", {"a": [0] * 249_994}),
            ("100 levels", {"a": nested(98)}),
            ("100 levels", {"a": ['"\\', nested(98)]}),
            ("100 levels", {"a": nested(900)}),
        ):
            for use in (sync.call, lambda tool, args: asyncio.run(tools.call(tool, args))):
                with self.assertRaises(ToolCallError) as raised:
                    use("a", args)
                said = (raised.exception.code, str(raised.exception))
                self.assertEqual(said, ("INVALID_REQUEST", refused % what))
        self.worker.end.setblocking(False)
        self.assertRaises(BlockingIOError, self.worker.end.recv, 1)


    def test_all_that_the_worker_reads_is_sent(self) -> None:
        for args in ({"a": [0] * 249_993}, {"a": nested(97)}, {"a": ["[{,\\\"" * 90_000, nested(96)]}):
            requests = self.answered({"structured": {}, "artifacts": []})
            tools.sync.call("a", args)
            self.assertEqual(requests[0]["payload"]["args"], args)


class Sharing(GatewayTest):
    def test_threads_and_tasks_get_their_own_answers_in_any_order(self) -> None:
        threads, tasks, calls = 6, 20, 25
        total = calls * (threads + tasks)

        def play(worker: Worker) -> None:
            held = []
            for count in range(1, total + 1):
                held.append(worker.read())
                if count % 7 == 0 or count > total - threads - tasks or len(held) > threads:
                    while held:
                        request = held.pop()
                        worker.respond(request, result_of(request))

        self.played(play)
        wrong = []

        def in_thread(name: int) -> None:
            for number in range(calls):
                if tools.sync.call("a", {"n": [name, number]}) != {"got": {"n": [name, number]}}:
                    wrong.append(name)

        async def in_task(name: int) -> None:
            for number in range(calls):
                if await tools.call("a", {"n": [name, number]}) != {"got": {"n": [name, number]}}:
                    wrong.append(name)

        async def all_tasks(start: int, count: int) -> None:
            await asyncio.gather(*map(in_task, range(start, start + count)))

        started = [threading.Thread(target=in_thread, args=(name,)) for name in range(threads)]
        loops = [
            threading.Thread(target=lambda start=start: asyncio.run(all_tasks(start, tasks // 2)))
            for start in (100, 200)
        ]
        for thread in started + loops:
            thread.start()
        for thread in started + loops:
            thread.join()
        self.assertEqual(wrong, [])

    def test_a_thread_that_waits_long_holds_up_no_other(self) -> None:
        first = threading.Event()

        def play(worker: Worker) -> None:
            slow = worker.read()
            first.set()
            for _ in range(3):
                request = worker.read()
                worker.respond(request, result_of(request))
            worker.respond(slow, result_of(slow))

        self.played(play)
        results = []
        slow = threading.Thread(target=lambda: results.append(tools.sync.call("slow", {"s": 1})))
        slow.start()
        first.wait()
        self.assertEqual(tools.sync.call("a", {"n": 1}), {"got": {"n": 1}})

        async def run() -> dict:
            return await tools.call("a", {"n": 2})

        self.assertEqual(asyncio.run(run()), {"got": {"n": 2}})
        # What waits in an event loop's own thread gets its answer, too.
        self.assertEqual(asyncio.run(self.sync_in_loop()), {"got": {"n": 3}})
        slow.join()
        self.assertEqual(results, [{"got": {"s": 1}}])

    @staticmethod
    async def sync_in_loop() -> dict:
        return tools.sync.call("a", {"n": 3})

    def test_a_worker_that_reads_nothing_stops_neither_answers_nor_the_event_loop(self) -> None:
        count, text = 40, "x" * 200_000

        def play(worker: Worker) -> None:
            first = worker.read()
            # More than both directions hold, before it reads on.
            worker.respond(first, {"structured": {"text": text * 20}, "artifacts": []})
            ready.wait(_WAIT_SECONDS)
            for _ in range(count - 1):
                worker.respond(worker.read(), {"structured": {"text": text}, "artifacts": []})

        ready = threading.Event()
        self.played(play)

        async def run() -> list:
            calls = [asyncio.ensure_future(tools.call("a", {"t": text})) for _ in range(count)]
            ticks = 0
            while not calls[0].done():
                await asyncio.sleep(0)
                ticks += 1
            self.assertGreater(ticks, 1)
            self.assertEqual([call for call in calls[1:] if call.done()], [])
            ready.set()
            return await asyncio.gather(*calls)

        sizes = [len(result["text"]) for result in asyncio.run(run())]
        self.assertEqual(sizes, [20 * len(text)] + [len(text)] * (count - 1))

    def test_a_long_request_is_sent_while_another_thread_waits(self) -> None:
        text = "x" * 900_000
        waits = threading.Event()

        def play(worker: Worker) -> None:
            slow = worker.read()
            waits.set()
            request = worker.read()
            worker.respond(request, {"structured": {"length": len(request["payload"]["args"]["t"])}, "artifacts": []})
            worker.respond(slow, result_of(slow))

        self.played(play)
        slow = threading.Thread(target=tools.sync.call, args=("slow",))
        slow.start()
        waits.wait()
        self.assertEqual(tools.sync.call("a", {"t": text}), {"length": len(text)})
        slow.join()

    def test_an_event_loop_takes_no_answer_from_a_thread_that_waits(self) -> None:
        count = 2_000

        def play(worker: Worker) -> None:
            slow = worker.read()
            begun.set()
            for _ in range(count):
                request = worker.read()
                worker.respond(request, result_of(request))
            worker.respond(slow, result_of(slow))

        begun = threading.Event()
        self.played(play)

        async def waits() -> None:
            await tools.call("slow")

        loop = threading.Thread(target=lambda: asyncio.run(waits()))
        loop.start()
        begun.wait()
        for number in range(count):
            self.assertEqual(tools.sync.call("a", {"n": number}), {"got": {"n": number}})
        loop.join()

    def test_threads_do_not_block_each_other_where_neither_end_reads(self) -> None:
        count, text = 12, "x" * 900_000

        def play(worker: Worker) -> None:
            for _ in range(count):
                worker.respond(worker.read(), {"structured": {"text": text}, "artifacts": []})

        self.played(play)
        sizes = []

        def run() -> None:
            sizes.append(len(tools.sync.call("a", {"t": text})["text"]))

        threads = [threading.Thread(target=run) for _ in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sizes, [len(text)] * count)


class Turns(GatewayTest):
    def test_more_than_eight_calls_wait_in_their_order(self) -> None:
        def play(worker: Worker) -> None:
            calls = [worker.read() for _ in range(8)]
            self.assertEqual([call["payload"]["args"]["n"] for call in calls], list(range(8)))
            search = worker.read()
            self.assertEqual(search["type"], "search_tools")
            worker.respond(search, {"results": []})
            self.assertEqual(worker.read(), {"type": "cancel", "id": calls[0]["id"]})
            worker.fail(calls[0], error="cancelled", code="CANCELLED")
            for expected in ("run_tool", 8), ("run_chain", 10), ("run_tool", 11):
                call = worker.read()
                args = call["payload"].get("args") or call["payload"]["steps"][0]["args"]
                self.assertEqual((call["type"], args["n"]), expected)
                worker.respond(call, {**result_of(call), "stepResults": []})
            for call in calls[1:]:
                worker.respond(call, result_of(call))

        self.played(play)

        def begun(number: int) -> "asyncio.Future":
            args = {"n": number}
            chain = number == 10
            return asyncio.ensure_future(
                tools.chain([{"tool": "a", "args": args}]) if chain else tools.call("a", args)
            )

        async def run() -> None:
            calls = [begun(number) for number in range(12)]
            await asyncio.sleep(0)
            await tools.search("sent at once")
            for cancelled in (calls.pop(9), calls.pop(0)):
                cancelled.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await cancelled
            await asyncio.gather(*calls)

        asyncio.run(run())

    def test_as_many_calls_as_the_worker_says_are_sent(self) -> None:
        gateway.of_call = (self.descriptor, os.getpid(), 2)

        def play(worker: Worker) -> None:
            calls = [worker.read() for _ in range(2)]
            search = worker.read()
            self.assertEqual(search["type"], "search_tools")
            worker.respond(search, {"results": []})
            for call in calls:
                worker.respond(call, result_of(call))
            third = worker.read()
            self.assertEqual(third["payload"]["args"], {"n": 2})
            worker.respond(third, result_of(third))

        self.played(play)

        async def run() -> None:
            calls = [asyncio.ensure_future(tools.call("a", {"n": number})) for number in range(3)]
            await asyncio.sleep(0)
            await tools.search("sent at once")
            await asyncio.gather(*calls)

        asyncio.run(run())

    def test_a_call_of_a_thread_that_is_interrupted_while_it_waits_is_never_sent(self) -> None:
        raised = []

        def interrupt(_: int, frame) -> None:
            while frame is not None and frame.f_code.co_name != "_wait":
                frame = frame.f_back
            if frame is not None and not raised:
                raised.append(True)
                raise TimeoutError("enough")

        former = signal.signal(signal.SIGUSR1, interrupt)
        self.addCleanup(signal.signal, signal.SIGUSR1, former)
        full = threading.Event()

        def play(worker: Worker) -> None:
            calls = [worker.read() for _ in range(8)]
            full.set()
            while not raised and not select.select([worker.end], [], [], 0.02)[0]:
                os.kill(os.getpid(), signal.SIGUSR1)
            worker.respond(calls[0], result_of(calls[0]))
            following = worker.read()
            self.assertEqual(following["payload"]["id"], "sent")
            for call in (following, *calls[1:]):
                worker.respond(call, result_of(call))

        self.played(play)
        threads = [threading.Thread(target=tools.sync.call, args=("slow",)) for _ in range(8)]
        for thread in threads:
            thread.start()
        full.wait()
        self.assertRaises(TimeoutError, tools.sync.call, "never")
        self.assertEqual(tools.sync.call("sent"), {"got": {}})
        for thread in threads:
            thread.join()

    def test_a_thread_that_waits_reads_the_answers_to_tasks_it_holds_up(self) -> None:
        def play(worker: Worker) -> None:
            for _ in range(9):
                call = worker.read()
                worker.respond(call, result_of(call))

        async def run() -> None:
            calls = [asyncio.ensure_future(tools.call("a")) for _ in range(8)]
            await asyncio.sleep(0)
            self.played(play)
            self.assertEqual(tools.sync.call("a", {"n": 1}), {"got": {"n": 1}})
            await asyncio.gather(*calls)

        asyncio.run(run())

    def test_a_channel_that_closes_ends_the_calls_that_wait(self) -> None:
        def play(worker: Worker) -> None:
            for _ in range(8):
                worker.read()
            worker.end.shutdown(socket.SHUT_RDWR)

        self.played(play)

        async def run() -> list:
            return await asyncio.gather(*(tools.call("a") for _ in range(10)), return_exceptions=True)

        self.assertEqual([error.code for error in asyncio.run(run())], ["GATEWAY_CLOSED"] * 10)


class Ends(GatewayTest):
    def test_the_cancellation_of_a_task_cancels_its_call_and_no_other(self) -> None:
        def play(worker: Worker) -> None:
            one, other = worker.read(), worker.read()
            self.assertEqual(worker.read(), {"type": "cancel", "id": one["id"]})
            worker.fail(one, error="cancelled", code="CANCELLED", retryable=False)
            worker.respond(other, result_of(other))

        self.played(play)

        async def run() -> dict:
            one = asyncio.ensure_future(tools.call("slow"))
            other = asyncio.ensure_future(tools.call("a", {"n": 1}))
            await asyncio.sleep(0)
            one.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await one
            return await other

        self.assertEqual(asyncio.run(run()), {"got": {"n": 1}})

    def test_a_timeout_of_the_program_cancels(self) -> None:
        requests = []

        def play(worker: Worker) -> None:
            requests.extend((worker.read(), worker.read(), worker.read()))
            worker.respond(requests[2], result_of(requests[2]))

        self.played(play)

        async def run() -> dict:
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(tools.call("slow"), 0.05)
            return await tools.call("a")

        self.assertEqual(asyncio.run(run()), {"got": {}})
        self.assertEqual(requests[1], {"type": "cancel", "id": requests[0]["id"]})

    def test_what_a_handler_of_a_signal_raises_cancels(self) -> None:
        raised = []

        def interrupt(*_: object) -> None:
            if not raised:
                raised.append(True)
                raise TimeoutError("enough")

        former = signal.signal(signal.SIGUSR1, interrupt)
        self.addCleanup(signal.signal, signal.SIGUSR1, former)
        requests = []

        def play(worker: Worker) -> None:
            requests.append(worker.read())
            # Python sees no signal that comes just before it waits.
            while not select.select([worker.end], [], [], 0.02)[0]:
                os.kill(os.getpid(), signal.SIGUSR1)
            requests.append(worker.read())
            last = worker.read()
            worker.respond(last, result_of(last))

        self.played(play)
        with self.assertRaisesRegex(TimeoutError, "enough"):
            tools.sync.call("slow")
        self.assertEqual(tools.sync.call("a"), {"got": {}})
        self.assertEqual(requests[1], {"type": "cancel", "id": requests[0]["id"]})

    def test_another_thread_reads_on_where_one_that_reads_is_interrupted(self) -> None:
        results = []
        follower = threading.Thread(target=lambda: results.append(tools.sync.call("a")))
        raised = []

        def interrupt(*_: object) -> None:
            if not raised:
                raised.append(True)
                raise TimeoutError("enough")

        former = signal.signal(signal.SIGUSR1, interrupt)
        self.addCleanup(signal.signal, signal.SIGUSR1, former)

        def play(worker: Worker) -> None:
            worker.read()
            follower.start()
            request = worker.read()
            while not select.select([worker.end], [], [], 0.02)[0]:
                os.kill(os.getpid(), signal.SIGUSR1)
            worker.respond(request, result_of(request))

        self.played(play)
        self.assertRaises(TimeoutError, tools.sync.call, "slow")
        follower.join()
        self.assertEqual(results, [{"got": {}}])

    def test_an_exception_of_a_handler_is_no_failure_of_the_channel(self) -> None:
        for function in ("read", "write"):
            requests = self.answered({"structured": {}, "artifacts": []})
            real = getattr(os, function)
            results = [TimeoutError("enough")]

            def once(*arguments: object, real=real, results=results) -> object:
                if results:
                    raise results.pop()
                return real(*arguments)

            with unittest.mock.patch.object(os, function, once):
                self.assertRaises(TimeoutError, tools.sync.call, "a")
            self.doCleanups()
            self.assertEqual(len(requests), 1)
            self.setUp()

    def test_a_worker_that_closes_ends_all_calls(self) -> None:
        def play(worker: Worker) -> None:
            for _ in range(3):
                worker.read()
            worker.end.shutdown(socket.SHUT_RDWR)

        self.played(play)
        codes = []

        def in_thread() -> None:
            try:
                tools.sync.call("a")
            except ToolCallError as error:
                codes.append(error.code)

        async def run() -> list:
            return await asyncio.gather(tools.call("a"), tools.call("b"), return_exceptions=True)

        thread = threading.Thread(target=in_thread)
        thread.start()
        codes.extend(error.code for error in asyncio.run(run()))
        thread.join()
        self.assertEqual(codes, ["GATEWAY_CLOSED"] * 3)
        with self.assertRaises(ToolCallError) as raised:
            tools.sync.call("a")
        self.assertEqual(raised.exception.code, "GATEWAY_CLOSED")

    def test_what_is_no_answer_closes_the_channel(self) -> None:
        lines = (b"[]", b"nothing", b"{}", b'{"type":"run","id":"1","payload":{}}', b"[" * 100_000, b"\xff")
        for line in (*lines, b'{"type":"response","id":[],"payload":{}}', b'{"type":"response","id":"1","payload":[]}'):
            with self.subTest(line=line[:50]):
                self.doCleanups()
                self.setUp()

                def play(worker: Worker, line: bytes = line) -> None:
                    worker.read()
                    worker.end.sendall(line + b"\n")

                self.played(play)
                with self.assertRaises(ToolCallError) as raised:
                    tools.sync.call("a")
                self.assertEqual(raised.exception.code, "GATEWAY_CLOSED")

    def test_an_answer_may_be_long_and_not_endless(self) -> None:
        text = "x" * (32 * 1024 * 1024 - 1_000)
        self.answered({"structured": {"text": text}, "artifacts": []})
        self.assertEqual(tools.sync.call("a"), {"text": text})

        def play(worker: Worker) -> None:
            worker.read()
            try:
                worker.end.sendall(b"x" * (33 * 1024 * 1024))
            except OSError:
                pass  # Nobody reads all of it.

        thread = threading.Thread(target=play, args=(self.worker,))
        thread.start()
        with self.assertRaises(ToolCallError) as raised:
            tools.sync.call("a")
        self.assertEqual(raised.exception.code, "GATEWAY_CLOSED")
        self.worker.end.shutdown(socket.SHUT_RDWR)
        thread.join()

    def test_a_descriptor_that_the_tool_has_closed_is_a_closed_gateway(self) -> None:
        with open(os.devnull, "rb") as file:
            for descriptor in (file.fileno(), 1_000_000):
                gateway.of_call = (descriptor, os.getpid(), 8)
                with self.assertRaises(ToolCallError) as raised:
                    tools.sync.call("a")
                self.assertEqual(raised.exception.code, "GATEWAY_CLOSED")

    def test_a_forked_process_may_not_call(self) -> None:
        self.answered({"structured": {}, "artifacts": []})
        tools.sync.call("a")
        pid = os.fork()
        if pid == 0:
            try:
                tools.sync.call("a")
            except RuntimeError as error:
                os._exit(7 if "forked" in str(error) else 8)
            finally:
                os._exit(9)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 7)


class WithoutGateway(unittest.TestCase):
    def test_each_use_is_refused(self) -> None:
        for use in (lambda: tools.sync.call("a"), lambda: tools.sync.a.b(), tools.sync.namespaces):
            with self.assertRaises(ToolCallError) as raised:
                use()
            said = (raised.exception.code, raised.exception.retryable, str(raised.exception))
            self.assertEqual(said, ("NOT_ALLOWED", False, "The tool's manifest entry has no gateway"))

    def test_the_tools_are_those_of_the_context_and_of_the_facade(self) -> None:
        context = ToolContext()
        self.assertIs(context.tools, tools)
        self.assertIs(ToolContextFacade(context).tools, tools)
        own = Tools()
        self.assertIs(ToolContextFacade(ToolContext(tools=own)).tools, own)
        self.assertIs(pickle.loads(pickle.dumps(context)).tools, tools)

    def test_a_tool_that_calls_none_loads_nothing_for_it(self) -> None:
        program = (
            "import sys; sys.path.insert(0, sys.argv[1]); import secure_tool_runtime as r; r.ToolContext();"
            "early = [n for n in sys.modules if 'gateway' in n];"
            "from secure_tool_runtime import tools; print(early, 'asyncio' in sys.modules)"
        )
        path = os.path.dirname(os.path.dirname(os.path.dirname(gateway.__file__)))
        printed = subprocess.check_output([sys.executable, "-I", "-c", program, path], text=True)
        self.assertEqual(printed, "[] False\n")


if __name__ == "__main__":
    unittest.main()
