"""Calls of other tools, for a tool whose manifest entry has a `gateway`."""

# The descriptor or the path of the call's channel, the process that has it, and the calls at a time
# that the worker reads from it; or None. The runner sets it.
of_call: "tuple[int | str, int, int] | None" = None
