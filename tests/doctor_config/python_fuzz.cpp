// Any text as Python gives tokens and calls whose positions are inside the text, or an Error.
#include <cstdlib>

#include "base/error.h"
#include "doctor/config/python_calls.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headroom;
  using namespace headroom::doctor;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    int64_t before = 0;
    for (const PythonToken& token : tokenize_python(text, "fuzz")) {
      if (token.begin < before || token.end < token.begin || static_cast<size_t>(token.end) > size) abort();
      before = token.begin;
    }
    for (const PythonCall& call : read_python_calls(text, "fuzz").calls)
      if (call.begin < 0 || static_cast<size_t>(call.end) > size) abort();
  } catch (const Error&) {
  }
  return 0;
}
