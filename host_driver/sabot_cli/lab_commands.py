"""``sabot lab-package``: what a test laboratory needs of a build, built, signed and verified."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.markup import escape

from sabot_cli.cli_context import CliContext, json_option, verbose_option
from sabot_cli.help_text import Group, example
from sabot_cli.output import OK, NotVerified
from sabot_cli.signing_keys import KEY_FILE, opened, passphrase_option
from sabot_cli.written_files import check_writable
from sabot_driver.errors import SabotError
from sabot_flash.uf2_image import read_image
from sabot_lab import archive
from sabot_lab.build import build
from sabot_lab.errors import LabPackageError, PackageBad
from sabot_lab.source_tree import SourceTree

FILE = click.Path(dir_okay=False, path_type=Path)


class NotBuilt(SabotError):
    """The package was not built; no file was written."""


class PackageRefused(NotVerified):
    """A package that does not hold."""


@contextmanager
def _told() -> Iterator[None]:
    """Errors of the package as errors of a command."""
    try:
        yield
    except PackageBad as error:
        raise PackageRefused(str(error), error.advice) from error
    except LabPackageError as error:
        raise NotBuilt(str(error), error.advice) from error


@click.group("lab-package", cls=Group)
@verbose_option
def lab_package() -> None:
    """What a test laboratory needs of a build, in one signed archive.

    Recipe with hashes, components, clauses with tests and results, fault table, evidence of fairness and
    secrecy, instructions for raw noise, changes with re-test scope, remaining risks. docs/lab-package.md
    lists the files.
    """


@lab_package.command("build", epilog=example("sabot lab-package build --source . --out lab.zip"))
@json_option
@click.option(
    "--source", type=click.Path(file_okay=False, path_type=Path), default=Path(), help="a clean git checkout"
)
@click.option("--results", type=FILE, help="the results of 'make lab-results' on this commit")
@click.option("--image", "images", type=FILE, multiple=True, help="an image (UF2) of this commit; repeatable")
@click.option("--out", type=FILE, required=True, help="the archive to write")
@click.pass_obj
def build_command(
    state: CliContext, source: Path, results: Path | None, images: tuple[Path, ...], out: Path
) -> int:
    """Build the package from a clean checkout; equal inputs give equal bytes. It is not signed yet.

    Without --results every test is told as 'not run'. Results of another commit are refused.

    Exit codes: 0 done, 1 the source, results or an image cannot be used, 2 usage.
    """
    check_writable(out)
    with _told():
        tree = SourceTree(source)
        read = {path.name: read_image(path) for path in images}
        made = build(tree, None if results is None else results.read_bytes(), read)
    out.write_bytes(made)
    words = f"{out}: commit {tree.commit[:12]}, {len(made):,} bytes, not signed"
    state.output.tell("lab_package", escape(words), file=str(out), commit=tree.commit, bytes=len(made))
    return OK


@lab_package.command("sign", epilog=example("sabot lab-package sign lab.zip --key maker.pem"))
@json_option
@passphrase_option
@click.argument("file", type=FILE)
@click.option("--key", "key_file", type=KEY_FILE, required=True, help="the maker's key ('evidence new-key')")
@click.pass_obj
def sign_command(state: CliContext, file: Path, key_file: Path, passphrase_stdin: bool) -> int:
    """Sign a package with the maker's Ed25519 key; the file is replaced by the signed one.

    Exit codes: 0 done, 1 the key cannot be used, 2 usage, 5 the package does not hold or is signed already.
    """
    key = opened(key_file, passphrase_stdin)
    with _told():
        package = archive.read_file(file)
        signed = archive.sign(package, key, archive.commit_of(package), int(time.time()))
    new = file.with_name(file.name + ".new")
    new.write_bytes(signed)
    new.replace(file)
    words = f"{file}: signed by {key.public}"
    state.output.tell("signed", escape(words), file=str(file), public=key.public)
    return OK


@lab_package.command("verify", epilog=example("sabot lab-package verify lab.zip"))
@json_option
@click.argument("file", type=FILE)
@click.option("--trust", metavar="HEX", help="the maker's public key, as the maker told you")
@click.option("--against", type=FILE, help="a second package that must be the same, but for its signature")
@click.pass_obj
def verify_command(state: CliContext, file: Path, trust: str | None, against: Path | None) -> int:
    """Check every file of a package, its manifest and its signature.

    Exit codes: 0 everything fits, 2 usage, 5 something does not fit.
    """
    with _told():
        package = archive.read_file(file)
        found = archive.verify(package, trust)
        if against is not None:
            other = archive.read_file(against)
            if archive.unsigned(other) != archive.unsigned(package):
                raise PackageBad(f"{against} holds other files than {file}")
    whose = "the trusted key" if trust else "the key that the package itself names,"
    at = datetime.fromtimestamp(found.at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    words = f"{file}: {found.files} files of commit {found.commit[:12]} fit, "
    words += f"signed by {whose} {found.key} at {at}"
    state.output.tell(
        "verified", escape(words), file=str(file), files=found.files, commit=found.commit, key=found.key,
        trusted=trust is not None,
    )  # fmt: skip
    return OK
