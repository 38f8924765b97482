"""What the readers of ZIP archives have in common."""

import zipfile
import zlib

#: The errors of `zipfile` for an archive that is damaged or encrypted, or that has an unknown
#: compression (a RuntimeError, too).
DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError)
