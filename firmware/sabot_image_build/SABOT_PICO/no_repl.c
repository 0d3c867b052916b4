// Where MicroPython would open its prompt, this image starts again: main.py has ended, which it never should.
#include "hardware/watchdog.h"

int pyexec_raw_repl(void) {
    watchdog_reboot(0, 0, 0);
    for (;;) {
    }
}

int pyexec_friendly_repl(void) {
    return pyexec_raw_repl();
}
