"""Lists the versions of the site: `python tests/site_versions.py site`, which `make docs` runs after each build.

Each version of the documentation is a folder of its own. The menu at the top of a page reads versions.json, and the
address without a version leads to the newest.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

REDIRECT = """<!doctype html>
<meta charset="utf-8">
<title>Skyband</title>
<meta http-equiv="refresh" content="0; url={0}/">
<a href="{0}/">The documentation of Skyband {0}</a>
"""


def versions(site: Path) -> list[str]:
    """The versions that the folder has, the newest first."""
    found = [page.parent.name for page in site.glob("*/index.html")]
    return sorted(found, key=lambda name: [int(part) for part in name.split(".")], reverse=True)


def write(site: Path) -> None:
    found = versions(site)
    listed = [{"version": name, "title": name, "aliases": []} for name in found]
    (site / "versions.json").write_text(json.dumps(listed, indent=1) + "\n")
    (site / "index.html").write_text(REDIRECT.format(found[0]))


if __name__ == "__main__":
    write(Path(sys.argv[1]))
