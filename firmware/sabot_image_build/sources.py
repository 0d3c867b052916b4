"""MicroPython's sources for the RP2040, from Debian's signed packages.

Debian 13 (trixie) has MicroPython 1.25 with the matching Pico SDK and TinyUSB. They are fetched from the
mirror that apt on this computer uses, into a folder of our own; apt's own state does not change. The prepared
tree is cached.
"""

import hashlib
import shutil
import subprocess
from pathlib import Path

from sabot_image_build.programs import BuildFailed, need, run

SUITE = "trixie"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
BINARIES = ("pico-sdk-source", "tinyusb-source")
SOURCES = ("micropython", "mbedtls")
LIBRARIES = ("pico-sdk", "tinyusb", "mbedtls")  # empty folders in Debian's MicroPython, filled from packages
READY = "ready"

# Changes to the sources: file, old text, new text, reason.
CHANGES = (
    (
        "ports/rp2/mphalport.h",
        "#define MICROPY_HW_USB_CDC_TX_TIMEOUT (500)",
        "#ifndef MICROPY_HW_USB_CDC_TX_TIMEOUT\n#define MICROPY_HW_USB_CDC_TX_TIMEOUT (500)\n#endif",
        "a board may say how long a write to a host that does not read holds up the program",
    ),
    (
        "py/objfun.c",
        "#define VM_MAX_STATE_ON_STACK (sizeof(mp_uint_t) * 11)",
        "#define VM_MAX_STATE_ON_STACK (sizeof(mp_uint_t) * 40)",
        "frames of calls on the stack: on the heap each takes a search of 0.2 ms for room, and edges wait",
    ),
    (
        "ports/rp2/memmap_mp_rp2040.ld",
        "__StackBottom = __StackTop - SIZEOF(.stack_dummy);",
        "__StackBottom = __StackTop - 16k;",
        "room for those frames: 16 KB of stack, not 8",
    ),
    (
        "ports/rp2/memmap_mp_rp2040.ld",
        "__GcHeapEnd = ORIGIN(RAM) + LENGTH(RAM);",
        "__GcHeapEnd = ORIGIN(RAM) + LENGTH(RAM) - 8k;",
        "which the heap leaves free",
    ),
    (
        "shared/tinyusb/mp_usbd_runtime.c",
        "static void mp_usbd_task_inner(void) {\n    in_usbd_task = true;",
        "__attribute__((weak)) volatile bool sabot_grid_runs = false;\n"
        "static void mp_usbd_task_inner(void) {\n"
        "    if (sabot_grid_runs) {\n        return;\n    }\n    in_usbd_task = true;",
        "while the grid runs (SABOT_PICO/grid.c), USB's stack runs at its ticks only",
    ),
    (
        "ports/rp2/machine_uart.c",
        "static void uart0_irq_handler(void) {",
        "size_t sabot_uart_take(uint8_t *to, size_t most) {\n"
        "    machine_uart_obj_t *self = &machine_uart_obj[0];\n"
        "    size_t taken = 0;\n"
        "    uart_drain_rx_fifo(self, UART_FIFO_SIZE_RX);\n"
        "    while (taken < most && ringbuf_avail(&self->read_buffer) > 0) {\n"
        "        to[taken++] = ringbuf_get(&self->read_buffer);\n"
        "    }\n"
        "    uart_drain_rx_fifo(self, UART_FIFO_SIZE_RX);\n"
        "    return taken;\n"
        "}\n\n"
        "size_t sabot_uart_put(const uint8_t *from, size_t length) {\n"
        "    machine_uart_obj_t *self = &machine_uart_obj[0];\n"
        "    size_t put = 0;\n"
        "    while (put < length && ringbuf_free(&self->write_buffer) > 0) {\n"
        "        ringbuf_put(&self->write_buffer, from[put++]);\n"
        "    }\n"
        "    uart_fill_tx_fifo(self);\n"
        "    return put;\n"
        "}\n\n"
        "static void uart0_irq_handler(void) {",
        "what the grid's interrupt takes from the UART's buffers and puts into them",
    ),
    (
        "py/modgc.c",
        "static const mp_rom_map_elem_t mp_module_gc_globals_table[] = {",
        "static mp_obj_t gc_allocated(void) {\n"
        "    return MP_OBJ_NEW_SMALL_INT(MP_STATE_MEM(gc_alloc_amount) * MICROPY_BYTES_PER_GC_BLOCK);\n"
        "}\n"
        "static MP_DEFINE_CONST_FUN_OBJ_0(gc_allocated_obj, gc_allocated);\n\n"
        "static const mp_rom_map_elem_t mp_module_gc_globals_table[] = {\n"
        "    { MP_ROM_QSTR(MP_QSTR_allocated), MP_ROM_PTR(&gc_allocated_obj) },",
        "gc.allocated(): the bytes handed out since the last collection, which MicroPython counts anyway; to"
        " ask what is free takes a walk through the heap, milliseconds",
    ),
)


def micropython_tree(cache: Path) -> Path:
    """MicroPython's source tree with its libraries and with mpy-cross built."""
    folder = cache / "micropython"
    ready = folder / READY
    if not ready.exists() or ready.read_text() != recipe():
        if folder.exists():
            shutil.rmtree(folder)
        _put_together(folder)
        ready.write_text(recipe())
    return _one(folder, "micropython-1.*")


def recipe() -> str:
    """A hash of how the tree is prepared; another hash means that it is prepared again."""
    return hashlib.sha256(repr((SUITE, BINARIES, SOURCES, CHANGES)).encode()).hexdigest()


def _put_together(folder: Path) -> None:
    for program, package in (("apt-get", "apt"), ("dpkg-deb", "dpkg"), ("make", "make"), ("gcc", "gcc")):
        need(program, package)
    fetched = folder / "fetched"
    for part in ("lists/partial", "cache/archives/partial"):
        (folder / "apt" / part).mkdir(parents=True)
    fetched.mkdir()
    sources = folder / "apt" / "debian.sources"
    sources.write_text(
        f"Types: deb deb-src\nURIs: {_mirror()}\nSuites: {SUITE}\nComponents: main\nSigned-By: {KEYRING}\n"
    )
    apt = [
        "apt-get",
        "-qq",
        *("-o", f"Dir::Etc::sourcelist={sources}"),
        *("-o", "Dir::Etc::sourceparts=/dev/null"),
        *("-o", f"Dir::State::lists={folder}/apt/lists"),
        *("-o", f"Dir::Cache={folder}/apt/cache"),
        *("-o", "APT::Sandbox::User=root"),
    ]
    log = folder / "fetch.log"
    run([*apt, "update"], log)
    run([*apt, "download", *BINARIES], log, within=fetched)
    run([*apt, "source", "--download-only", *SOURCES], log, within=fetched)
    for archive in sorted(fetched.glob("*.orig.tar.*")):
        run(["tar", "xf", archive], log, within=folder)
    for binary in sorted(fetched.glob("*.deb")):
        run(["dpkg-deb", "-x", binary, folder / "packages"], log)
    tree = _one(folder, "micropython-1.*")
    for library in LIBRARIES:
        place = tree / "lib" / library
        if place.is_dir():
            place.rmdir()
        packaged = folder / "packages" / "usr" / "src" / library
        place.symlink_to(packaged if packaged.exists() else _one(folder, f"{library}-3.*"))
    for name, before, after, why in CHANGES:
        text = (tree / name).read_text()
        if text.count(before) != 1:
            raise BuildFailed(f"{name} is not the expected version; needed there: {why}")
        (tree / name).write_text(text.replace(before, after))
    (tree / "lib" / "micropython-lib" / "README.md").touch()  # only its presence is asked for
    run(["make", "-C", tree / "mpy-cross", "-j2"], folder / "mpy-cross.log")


def _mirror() -> str:
    """The Debian mirror among this computer's apt sources."""
    told = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI) $(ORIGIN)"],
        capture_output=True,
        text=True,
        check=True,
    )
    for line in told.stdout.splitlines():
        address, _, origin = line.partition(" ")
        if origin.strip() == "Debian" and "security" not in address:
            return address
    raise BuildFailed("no Debian mirror is among this computer's apt sources")


def _one(folder: Path, pattern: str) -> Path:
    found = sorted(each for each in folder.glob(pattern) if each.is_dir())
    if len(found) != 1:
        raise BuildFailed(f"{len(found)} folders are called {pattern} in {folder}; one is needed")
    return found[0]
