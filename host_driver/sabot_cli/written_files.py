"""Files that commands write for people: one error type for all of them."""

from pathlib import Path

from sabot_driver.errors import SabotError


class CannotWrite(SabotError):
    """A file that cannot be written."""

    advice = "Name a file in a folder that you may write to."


class FileProblem(SabotError):
    """A file or folder that cannot be used."""

    advice = "Check that it is there, that you may use it, and that the disk has room."


def file_error(error: OSError) -> FileProblem:
    """An error of the operating system about a file, as ours."""
    return FileProblem(f"{error.filename}: {error.strerror}")


def check_writable(path: Path) -> None:
    """CannotWrite if a file of this name could not be written; before long work, not after it."""
    folder = path.parent
    if path.is_dir():
        raise CannotWrite(f"{path}: this is a folder")
    if not folder.is_dir():
        raise CannotWrite(f"{path}: the folder {folder} does not exist", f"Make it first: mkdir -p {folder}")
    existed = path.exists()
    try:
        with path.open("ab"):
            pass
        if not existed:
            path.unlink()
    except OSError as error:
        raise CannotWrite(f"{path}: {error.strerror}") from error


def check_folder(folder: Path) -> None:
    """CannotWrite if a folder of this name cannot be made or written to; it is made if there is none."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotWrite(f"{folder}: {error.strerror}") from error
    check_writable(folder / "index.html")


def write_text(path: Path, text: str) -> None:
    """Write a text; CannotWrite says why not."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CannotWrite(f"{path}: {error.strerror}") from error
