"""Calls of other tools, for a tool whose manifest entry has a `gateway`."""

# The descriptor of the call's channel and the process that has it, or None. The runner sets it.
of_call: "tuple[int, int] | None" = None
