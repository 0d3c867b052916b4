"""``make firmware``: build every image and print its size."""

import argparse
import hashlib
import sys

from rich.console import Console
from rich.table import Table

from sabot_image_build import build
from sabot_image_build.programs import BuildFailed


def main() -> int:
    """Build the images; 1 if a step failed."""
    parser = argparse.ArgumentParser(prog="python -m sabot_image_build", description=__doc__)
    parser.add_argument("--no-uf2", action="store_true", help="only byte code and its file system")
    options = parser.parse_args()
    console = Console()
    table = Table(title="Sabot firmware for the Raspberry Pi Pico")
    for name in ("image", "bytes", "sha256"):
        table.add_column(name)
    try:
        files = build.build_mpy()
        build.FILES.write_bytes(build.build_file_system(files))
        size = sum(map(len, files.values()))
        table.add_row(f"{len(files)} modules as byte code", f"{size:,}", "")
        _add(table, f"{build.FILES.name}, a file system of it", build.FILES.read_bytes())
        if not options.no_uf2:
            image = build.build_uf2()
            _add(table, f"{image.path.name}, everything frozen", image.path.read_bytes())
            room = f"room for {image.room_bytes:,}"
            table.add_row("its program in flash", f"{image.program_bytes:,}", room)
            for each in image.components:
                table.add_row(f"  {each.name} {each.version}", "", each.sha256.hex()[:16])
            development = build.build_development()
            _add(table, f"{development.name}, for development", development.read_bytes())
    except BuildFailed as failed:
        console.print(f"[red]{failed}[/red]", markup=True, highlight=False)
        return 1
    console.print(table)
    return 0


def _add(table: Table, name: str, data: bytes) -> None:
    table.add_row(name, f"{len(data):,}", hashlib.sha256(data).hexdigest()[:16])


if __name__ == "__main__":
    sys.exit(main())
