"""Archives with the same bytes for the same content: a fixed order, and one time for everything."""

import gzip
import io
import tarfile
import time
import zipfile


def tar(path, content, when):
    """A compressed tar archive of (bytes, place, mode)."""
    with open(path, "wb") as raw, gzip.GzipFile("", "wb", mtime=when, fileobj=raw) as packed:
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as archive:
            for data, place, mode in content:
                info = tarfile.TarInfo(place)
                info.size, info.mode, info.mtime = len(data), mode, when
                archive.addfile(info, io.BytesIO(data))
    return path


def zipped(path, content, when):
    """A zip archive of (bytes, place, mode); its times begin with 1980."""
    moment = time.gmtime(max(when, 315532800))[:6]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for data, place, mode in content:
            info = zipfile.ZipInfo(place, moment)
            info.external_attr = (0o100000 | mode) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, data)
    return path
