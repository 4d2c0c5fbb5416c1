/**
 * The limits of programs in the wasm backend.
 */

const mebibyte = 1024 * 1024;

/** Memory of an instance, of requests that name none. */
export const defaultMemoryBytes = 64 * mebibyte;
/** Below, there is no room for the engine itself. */
export const leastMemoryBytes = 4 * mebibyte;
/** A wasm module addresses 4 GiB; V8 takes no greater maximum. */
export const greatestMemoryBytes = 4096 * mebibyte;
/** What the host writes into an instance, beyond what the program can allocate. */
export const reservedMemoryBytes = mebibyte;

/** The bytes of a value or of an answer to a request, as JSON. */
export const maxMessageBytes = 10 * mebibyte;
/** Kept bytes of stdout and of stderr, the mark of a cut included. */
export const maxStreamBytes = 64 * 1024;
/** The bytes of a request's payload. */
export const maxRequestBytes = mebibyte;
/** Levels of a value. */
export const maxValueDepth = 97;
/** Values in a value. */
export const maxValues = 1_000_000;
/** Requests to the gateway without an answer; more wait inside. */
export const maxRequestsAtOnce = 8;
/** Timers of a program that have not fired. */
export const maxTimers = 1_000;
/** Promises, rejected and unhandled, that are remembered until the program's turn is over. */
export const maxRejections = 100;

/** The engine's stack; V8's carries it, whatever the program nests. */
export const engineStackBytes = 256 * 1024;
export const threadStackMb = 16;
/** Megabytes of a thread's own objects: sources, messages. */
export const threadHeapMb = 256;

/** Threads that run programs, where options name no number. */
export const defaultThreads = 4;
/** Threads that wait for programs, where options name no number. */
export const defaultIdleThreads = 1;
/** Executions that wait for a thread. */
export const maxWaitingExecutions = 1_000;
/** Programs that one thread runs, each in an instance of its own. */
export const maxRunsOfThread = 100;
/** A thread whose instance has grown beyond is ended after the program. */
export const reusedMemoryBytes = 8 * mebibyte;
/** Milliseconds until a new thread has to be ready. */
export const threadStartTimeoutMs = 30_000;
/** Milliseconds between a program's start and that of a thread in place of its own. */
export const refillDelayMs = 25;
/** Compiled engines, one for each bound of memory. */
export const maxEngines = 4;

/** Milliseconds between two looks at a program's processor time, at least. */
export const minCpuLookMs = 5;
