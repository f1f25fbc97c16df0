#include "call_stack.h"

#include <dlfcn.h>
#include <link.h>
#include <unwind.h>

namespace {

struct Walk {
  const link_map* own = nullptr;  // the module of the first frame: this library
  uint64_t hash = 0xcbf29ce484222325;
};

// FNV-1a over 8 bytes at a time, with the upper half folded in.
uint64_t mixed(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x100000001b3;
  return hash ^ (hash >> 32);
}

_Unwind_Reason_Code add(_Unwind_Context* context, void* into) {
  Walk& walk = *static_cast<Walk*>(into);
  const uintptr_t address = _Unwind_GetIP(context);
  dl_find_object found;
  if (_dl_find_object(reinterpret_cast<void*>(address), &found) != 0) return _URC_END_OF_STACK;  // generated code
  const link_map* module = found.dlfo_link_map;
  if (!walk.own) walk.own = module;
  if (module == walk.own) return _URC_NO_REASON;
  for (const char* c = module->l_name; *c; ++c) walk.hash = mixed(walk.hash, static_cast<unsigned char>(*c));
  walk.hash = mixed(walk.hash, address - module->l_addr);
  return _URC_NO_REASON;
}

}  // namespace

uint64_t call_stack_hash() {
  Walk walk;
  _Unwind_Backtrace(add, &walk);
  return walk.hash;
}
