"""No core dumps: they would hold keys."""


def forbid_core_dumps() -> None:
    """Keep keys out of core dumps, of this process and of those it starts. Windows has none.

    Every program of ours that may hold a key calls this first.
    """
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
