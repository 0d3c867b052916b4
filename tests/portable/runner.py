"""Runs portable tests on MicroPython: ``micropython tests/portable/runner.py MODULE ...``.

Each ``test_*`` function is one test, and ``MODULE.TEST`` runs one alone. A line a test is printed: PASS or
FAIL, module and name, and for a failure the traceback before it. Ends with the counts, as pytest does.
"""

import gc
import sys


def run(chosen: "list[str]") -> int:
    """Run all tests of modules, or those that are named; return how many failed."""
    passed = failed = 0
    for each in chosen:
        name, _, alone = each.partition(".")
        module = __import__(name)
        found = sorted([each for each in dir(module) if each.startswith("test_")])
        for test in [alone] if alone else found:
            gc.collect()
            try:
                getattr(module, test)()
            except Exception as error:
                sys.print_exception(error)  # type: ignore[attr-defined]
                print("FAIL", name, test)
                failed += 1
            else:
                print("PASS", name, test)
                passed += 1
    print("%d passed, %d failed" % (passed, failed))
    return failed


if __name__ == "__main__":
    sys.exit(1 if run(sys.argv[1:]) else 0)
