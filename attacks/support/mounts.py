"""What is mounted in a sandbox."""


def mount_points():
    """proc_pid_mountinfo(5); none where /proc is empty."""
    try:
        with open("/proc/self/mountinfo") as lines:
            return [line.split()[4].encode().decode("unicode_escape") for line in lines]
    except OSError:
        return []
