// TensorFlow: sizes are shapes, or numbers with the letters K, M, G for powers of 1024.
#include <array>
#include <cctype>

#include "doctor/messages/recognisers.h"

namespace headroom::doctor {
namespace {

struct Type {
  std::string_view name;
  int64_t bytes;
};
constexpr std::array<Type, 18> kTypes = {{{"float", 4},
                                          {"half", 2},
                                          {"bfloat16", 2},
                                          {"double", 8},
                                          {"int8", 1},
                                          {"uint8", 1},
                                          {"int16", 2},
                                          {"uint16", 2},
                                          {"int32", 4},
                                          {"uint32", 4},
                                          {"int64", 8},
                                          {"uint64", 8},
                                          {"bool", 1},
                                          {"qint8", 1},
                                          {"quint8", 1},
                                          {"complex64", 8},
                                          {"complex128", 16},
                                          {"string", 0}}};

// Number of elements of "[64,2016,9,9]" at `position`; sets `end` after the bracket. nullopt when cut, empty or above
// 63 bits.
std::optional<int64_t> elements(const Reading& r, size_t position, size_t& end) {
  if (!r.at(position, "[")) return std::nullopt;
  int64_t product = 1;
  for (size_t at = position + 1; at < r.size() && at - position < 200;) {
    // Dimensions are separated by commas without spaces, so each is read digit by digit.
    int64_t dimension = 0;
    const size_t start = at;
    while (at < r.size() && r.text()[at] >= '0' && r.text()[at] <= '9' && dimension < (int64_t{1} << 48)) {
      dimension = dimension * 10 + (r.text()[at++] - '0');
    }
    if (at == start || at >= r.size()) return std::nullopt;
    if (dimension != 0 && product > INT64_MAX / 32 / dimension) return std::nullopt;
    product *= dimension;
    if (r.at(at, "]")) {
      end = at + 1;
      return product;
    }
    if (!r.at(at, ",")) return std::nullopt;
    ++at;
  }
  return std::nullopt;
}

// Bytes per element of the type named at `position`.
std::optional<int64_t> type_bytes(Reading& r, size_t position) {
  for (const Type& type : kTypes) {
    const size_t end = position + type.name.size();
    if (!r.at(position, type.name) || type.bytes == 0) continue;
    if (end < r.size() && !r.text().gap(end) && std::isalnum(static_cast<unsigned char>(r.text()[end])) != 0) continue;
    r.extend(end);
    return type.bytes;
  }
  return std::nullopt;
}

// "/device:GPU:0", "allocator GPU_0_bfc", "(GPU_0_bfc)"
void device_of_allocator(Reading& r, size_t from) {
  if (const auto index = r.after("device:gpu:", from, 120)) r.device(*index);
  if (const auto index = r.after("gpu_", from, 160)) {
    if (r.device(*index)) r.after("_bfc", *index, 6);
  }
}

// The allocator's statistics after the message: "Limit: 25000000000\nInUse: ...".
void statistics(Reading& r) {
  const auto stats = r.after("stats:", r.end(), 2500);
  if (!stats) return;
  if (const auto limit = r.after("limit:", *stats, 80)) r.amount(*limit, kBare, kProcessLimit);
  if (const auto in_use = r.after("inuse:", *stats, 160)) r.amount(*in_use, kBare, kAllocated);
}

// "OOM when allocating tensor with shape[64,2016,9,9] and type float on /job:.../device:GPU:0 by allocator GPU_0_bfc"
bool shape(Reading& r) {
  size_t end = 0;
  const auto open = r.text().view().substr(r.trigger(), 40).find('[');
  if (open != std::string_view::npos) {
    const auto count = elements(r, r.trigger() + open, end);
    if (end != 0) r.extend(end);
    if (count && r.at(end, "andtype")) {
      if (const auto bytes = type_bytes(r, end + 7)) {
        r.message.requested_bytes = *count * *bytes;
        device_of_allocator(r, end);
        if (r.follows("device:cpu:", end, 120) || r.follows("byallocatorcpu", end, 160)) r.hint("host_ram");
      }
    }
  }
  r.identify("tensorflow", r.message.requested_bytes ? "tf_full" : "tf_shape");
  return true;
}

// "failed to allocate 3.81G (4087755776 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory", also
// "failed to alloc 8589934592 bytes on host", "could not allocate pinned host memory of size: 8589934592"
bool driver(Reading& r) {
  const size_t at = r.body();
  const auto rounded = quantity_at(r.text(), at, kAnyBinary);
  if (!rounded) return false;
  const bool host = r.follows("onhost", rounded->end, 12);
  const bool exact = r.at(rounded->end, "(");
  const auto bytes = exact ? quantity_at(r.text(), rounded->end + 1, kIec) : std::nullopt;
  if (!host && !r.follows("fromdevice", rounded->end, 40) && !r.follows("cuda_error_out_of", rounded->end, 60))
    return false;
  if (bytes) {
    r.amount(rounded->end + 1, kIec, kRequested);
  } else {
    r.amount(at, kAnyBinary, kRequested);
  }
  r.after("outofmemory", rounded->end, 90);
  if (host) r.hint("host_ram");
  r.identify("tensorflow", "tf_driver");
  return true;
}

bool pinned(Reading& r) {
  if (!r.amount(r.body(), kIec | kBare, kRequested)) return false;
  r.hint("host_ram");
  r.identify("tensorflow", "tf_pinned");
  return true;
}

// "Allocator (GPU_0_bfc) ran out of memory trying to allocate 45.53MiB (rounded to 47742208)requested by op ...". XLA's
// copy of the allocator prints the same with its own path.
bool bfc(Reading& r) {
  const auto tried = r.after("ranoutofmemorytryingtoallocate", r.trigger(), 60);
  if (!tried) return false;
  const auto end = r.amount(*tried, kAnyBinary, kRequested);
  device_of_allocator(r, r.trigger());
  if (end && r.follows("thisisnotafailure", *end, 120)) {
    r.after("morememorywereavailable", *end, 260);
    r.hint("soft");
  }
  const bool xla = r.near_before(r.trigger(), "external/xla", 120) || r.near_before(r.trigger(), "xla/tsl", 120);
  r.begin_at(r.trigger());
  statistics(r);
  r.identify(xla ? "jax" : "tensorflow", r.message.hints.empty() ? "tf_bfc" : "tf_bfc_soft");
  return true;
}

// "Allocation of 4294967296 exceeds 10% of free system memory.": a warning
bool system_memory(Reading& r) {
  if (!r.follows("offreesystemmemory", r.trigger(), 60)) return false;
  r.amount(r.body(), kIec | kBare, kRequested);
  r.after("offreesystemmemory", r.trigger(), 60);
  r.hint("soft");
  r.hint("host_ram");
  r.identify("tensorflow", "tf_system_memory");
  return true;
}

// "Dst tensor is not initialized": a copy to a full device failed
bool destination(Reading& r) {
  r.hint("disguised");
  r.identify("tensorflow", "tf_destination");
  return true;
}

// "Ran out of GPU memory when allocating 301989888 bytes for ..."
bool ran_out(Reading& r) {
  r.amount(r.body(), kIec | kBare, kRequested);
  r.identify("tensorflow", "tf_ran_out");
  return true;
}

// "InternalError: Failed to create session.": the device has no room for one, since somebody else holds it
bool session(Reading& r) {
  r.hint("disguised");
  r.identify("tensorflow", "tf_session");
  return true;
}

}  // namespace

void add_tensorflow_recognisers(std::vector<Recogniser>& table) {
  table.push_back({"tf_shape", "oomwhenallocatingtensor", shape});
  table.push_back({"tf_driver", "failedtoallocate", driver});
  table.push_back({"tf_driver", "failedtoalloc", driver});
  table.push_back({"tf_pinned", "couldnotallocatepinnedhostmemoryofsize:", pinned});
  table.push_back({"tf_bfc", "allocator(", bfc});
  table.push_back({"tf_system_memory", "allocationof", system_memory});
  table.push_back({"tf_destination", "dsttensorisnotinitialized", destination});
  table.push_back({"tf_session", "internalerror:failedtocreatesession", session});
  table.push_back({"tf_ran_out", "ranoutofgpumemorywhenallocating", ran_out});
}

}  // namespace headroom::doctor
