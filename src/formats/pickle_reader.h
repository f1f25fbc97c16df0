// Reads pickles of protocols 0 to 5 into plain values; nothing in them is imported, called or executed.
//
// Opcodes as documented in CPython's Lib/pickletools.py.
#pragma once

#include <string>
#include <string_view>

#include "formats/pickle_document.h"

namespace headroom {

// Whether a file with this beginning may be a pickle: the mark of protocols 2 to 5, or a container written by protocols
// 0 and 1. No log or configuration in text begins like that. 8 bytes are enough.
bool looks_like_pickle(std::string_view prefix);

// The value that the pickle builds; bytes after its end are ignored. `bytes` must outlive the document.
//
// Builds only None, booleans, numbers, text, bytes, lists, tuples, dictionaries (also OrderedDict) and sets. A pickle
// that refers to any other class or function, to persistent or registered objects or to buffers outside it is refused,
// naming what it refers to. Throws Error(format) with `source`, the byte's offset and the reason. O(n log n) time and
// at most about 40 bytes of memory per byte; files of 4 GiB and more are refused. Thread-safe.
PickleDocument read_pickle(std::string_view bytes, const std::string& source);

}  // namespace headroom
