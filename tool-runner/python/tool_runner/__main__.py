"""Entry of the Python tool runner: `python3 -I -B …/tool_runner/__main__.py RUNNER_ARGS_FILE`.

Run as a file, not as a directory or with -m: both of these import `runpy`, which takes 4 ms.
"""

import sys

if __name__ == "__main__":
    _here = __file__.rpartition("/")[0]
    # Tools import `secure_tool_runtime` from beside this directory. Where Python put the directory
    # itself on the path, it goes: a tool's module may be called `protocol`, too.
    if sys.path[0] == _here:
        del sys.path[0]
    sys.path.insert(0, _here.rpartition("/")[0])

# Also in a process that `multiprocessing` spawns for the tool: it runs this file again, under
# another name.
from secure_tool_runtime import StandIns

sys.meta_path.append(StandIns)

if __name__ == "__main__":
    # With a path, this module is a package: the runner's modules become `__main__.runner` and so
    # on, names that no module of a tool can have or hide.
    __path__ = [_here]
    if sys.argv[1:2] == ["--no-programs"]:
        # Before anything of the tool can be imported.
        try:
            from __main__.restrictions.no_programs import refuse_programs

            refuse_programs()
        except Exception as error:
            sys.exit(f"tool_runner: new programs cannot be refused: {error!r}")
        for arguments in (sys.argv, getattr(sys, "orig_argv", [])):  # From Python 3.10 on.
            if "--no-programs" in arguments:
                arguments.remove("--no-programs")
    if sys.argv[1:2] == ["--park"]:
        from __main__.idle.parked import park as main
    elif sys.argv[1:2] == ["--template"]:
        from __main__.forks.template import template as main
    else:
        from __main__.runner import main

    sys.exit(main(sys.argv))
