"""Print a fingerprint of everything that the page is built from."""

import hashlib
from pathlib import Path

HERE = Path(__file__).parent
SOURCES = ["package.json", "package-lock.json", "tsconfig.json", "vite.config.js"]

digest = hashlib.sha256()
for file in sorted([HERE / name for name in SOURCES] + [f for f in (HERE / "src").rglob("*") if f.is_file()]):
    digest.update(f"{file.relative_to(HERE).as_posix()}\n".encode() + file.read_bytes().replace(b"\r\n", b"\n"))
print(digest.hexdigest())
