// Pickles of protocols 0 to 5 read into plain values; nothing in them is imported, called or executed.
//
// Opcodes as documented in CPython's Lib/pickletools.py.
#pragma once

#include <string>
#include <string_view>

#include "formats/pickle_document.h"

namespace headroom {

// Whether a file that begins so may be a pickle: the mark of protocols 2 to 5, or a container written by protocols 0
// and 1. No text of a log or a configuration begins like that. 8 bytes are enough.
bool looks_like_pickle(std::string_view prefix);

// The value that the pickle builds; what follows its end is ignored. `bytes` must outlive the document.
//
// Only None, booleans, numbers, text, bytes, lists, tuples, dictionaries (OrderedDict among them) and sets are built. A
// pickle that refers to any other class or function, to persistent or registered objects or to buffers outside itself
// is refused by name. Throws Error(format) with `source`, the byte's offset and what is wrong there. Time is O(n log n)
// and memory at most about 40 bytes per byte; files of 4 GiB and more are refused. Thread-safe.
PickleDocument read_pickle(std::string_view bytes, const std::string& source);

}  // namespace headroom
