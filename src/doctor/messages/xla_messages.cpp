// JAX and XLA: exact bytes on GPUs; on TPUs letters for powers of 1024.
#include "doctor/messages/recognisers.h"

namespace headroom::doctor {
namespace {

// "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 7406166528 bytes.", since 2025 also "12.50GiB"
bool while_trying(Reading& r) {
  r.amount(r.body(), kIec, kRequested);
  const bool statistics = r.follows("bufferassignmentstats:", r.end(), 80);
  if (statistics && r.after("totalfragmentation:", r.end(), 700)) r.after(")", r.end(), 40);
  r.identify("jax", statistics ? "jax_stats" : "jax_plain");
  return true;
}

// "Out of memory allocating 301989888 bytes." of XLA. CuPy's message starts the same and continues "(allocated so far".
bool allocating(Reading& r) {
  const auto amount = quantity_at(r.text(), r.body(), kIec);
  if (!amount || r.follows("allocatedsofar", amount->end, 8)) return false;
  if (!r.near_before(r.trigger(), "resource_exhausted", 40) && !r.near_before(r.trigger(), "resourceexhausted", 40)) {
    return false;
  }
  r.amount(r.body(), kIec, kRequested);
  r.identify("jax", "jax_plain");
  return true;
}

// "Failed to allocate request for 9.54GiB (10240000000B) on device ordinal 0"
bool request_for(Reading& r) {
  const auto rounded = quantity_at(r.text(), r.body(), kAnyBinary);
  if (!rounded) return false;
  const auto exact = r.at(rounded->end, "(") ? quantity_at(r.text(), rounded->end + 1, kAnyBinary) : std::nullopt;
  r.amount(exact ? rounded->end + 1 : r.body(), kAnyBinary, kRequested);
  if (const auto ordinal = r.after("deviceordinal", rounded->end, 40)) r.device(*ordinal, true);
  r.identify("jax", "jax_request");
  return true;
}

// "Ran out of memory in memory space hbm. Used 21.90G of 7.48G hbm. Exceeded hbm capacity by 14.42G."
bool memory_space(Reading& r) {
  if (const auto used = r.after("used", r.body(), 40)) {
    if (const auto end = r.amount(*used, kAnyBinary, kRequested); end && r.at(*end, "of")) {
      r.amount(*end + 2, kAnyBinary, kCapacity);
    }
    if (const auto by = r.after("capacityby", *used, 60)) {
      if (const auto excess = quantity_at(r.text(), *by, kAnyBinary)) r.extend(excess->end);
    }
  }
  r.identify("xla-tpu", "tpu_hbm");
  r.phase("compile", "reported by the compiler");
  return true;
}

// "Attempting to reserve 1.20G at the bottom of memory. That was not possible. There are 900.00M free, 0B reserved, and
// 900.00M reservable.", "Attempting to allocate 3.94G. That was not possible. There are 2.55G free."
bool attempting(Reading& r) {
  const auto amount = quantity_at(r.text(), r.body(), kAnyBinary);
  if (!amount || !r.follows("thatwasnotpossible", amount->end, 40)) return false;
  r.amount(r.body(), kAnyBinary, kRequested);
  if (const auto there = r.after("thereare", amount->end, 70)) {
    const auto free = quantity_at(r.text(), *there, kAnyBinary);
    if (free && r.at(free->end, "free")) r.amount(*there, kAnyBinary, kFree);
  }
  r.identify("xla-tpu", "tpu_allocate");
  return true;
}

// "RESOURCE_EXHAUSTED: ..." with a truncated or another text
bool exhausted(Reading& r) {
  if (!r.follows("memory", r.body(), 60) && !r.follows("failedtoallocate", r.body(), 60)) return false;
  for (const std::string_view other : {"whiletryingtoallocate", "allocating", "ranoutofmemoryin", "attemptingto",
                                       "requestfor", "kvcache", "triedtoallocate"}) {
    if (r.follows(other, r.body(), 160)) return false;
  }
  r.identify("jax", "jax_no_numbers");
  return true;
}

// "Failed to determine best cudnn convolution algorithm for: %cudnn-conv = ...": no algorithm's workspace fits beside
// the memory that XLA allocated at start.
bool no_algorithm(Reading& r) {
  r.identify("jax", "xla_no_algorithm");
  r.hint("disguised");
  return true;
}

}  // namespace

void add_xla_recognisers(std::vector<Recogniser>& table) {
  table.push_back({"jax_while_trying", "outofmemorywhiletryingtoallocate", while_trying});
  table.push_back({"jax_while_trying", "memorywhiletryingtoallocate", while_trying});
  table.push_back({"jax_allocating", "outofmemoryallocating", allocating});
  table.push_back({"jax_request", "failedtoallocaterequestfor", request_for});
  table.push_back({"tpu_hbm", "ranoutofmemoryinmemoryspace", memory_space});
  table.push_back({"tpu_allocate", "attemptingtoreserve", attempting});
  table.push_back({"tpu_allocate", "attemptingtoallocate", attempting});
  table.push_back({"xla_no_algorithm", "determinebestcudnnconvolutionalgorithm", no_algorithm});
  table.push_back({"jax_exhausted", "resource_exhausted:", exhausted});
}

}  // namespace headroom::doctor
