// vLLM's errors at start, mostly about room for the KV cache. It prints GiB and counts tokens.
#include "doctor/messages/recognisers.h"

namespace headroom::doctor {
namespace {

void starting(Reading& r, std::string_view format) {
  r.identify("vllm", format);
  r.phase("serve_init", "sizing of the KV cache");
}

// "No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine."
bool no_blocks(Reading& r) {
  r.after("initializingtheengine", r.body(), 80);
  starting(r, "vllm_no_blocks");
  return true;
}

// "The model's max seq len (4096) is larger than the maximum number of tokens that can be stored in KV cache (3664)."
bool sequence_too_long(Reading& r) {
  if (r.before(r.trigger(), "models's") && r.follows("kvcacheisneeded", r.body(), 60)) return false;
  const auto wanted = r.at(r.body(), "(") ? r.number(r.body() + 1) : std::nullopt;
  if (!r.follows("islargerthan", r.body(), 24)) return false;
  r.message.kv_tokens_wanted = wanted;
  if (const auto stored = r.after("kvcache(", r.body(), 90)) r.message.kv_tokens_available = r.number(*stored);
  r.after("initializingtheengine", r.end(), 120);
  starting(r, "vllm_max_seq_len");
  return true;
}

// "To serve at least one request with the models's max seq len (131072), (16.00 GiB KV cache is needed, which is larger
// than the available KV cache memory (0.71 GiB). Based on the available memory, the estimated maximum model length is
// 5632."
bool one_request(Reading& r) {
  if (const auto wanted = r.after("seqlen(", r.body(), 60)) {
    r.message.kv_tokens_wanted = r.number(*wanted);
    const size_t from = *wanted;
    const size_t needed = r.text().view().substr(0, std::min(r.size(), from + 60)).find("kvcacheisneeded", from);
    if (needed != std::string_view::npos && r.amount_before(needed, from, kIec, kRequested)) {
      r.message.kv_bytes_wanted = r.message.requested_bytes;
    }
    if (const auto room = r.after("kvcachememory(", from, 120)) {
      if (r.amount(*room, kIec, kFree)) r.message.kv_bytes_available = r.message.free_bytes;
    }
    if (const auto length = r.after("maximummodellengthis", from, 220)) {
      r.message.kv_tokens_available = r.number(*length);
      r.after("initializingtheengine", *length, 120);
    }
  }
  starting(r, "vllm_kv_needed");
  return true;
}

// "Free memory on device cuda:1 (19.77/22.05 GiB) on startup is less than desired GPU memory utilization (0.9, 19.84
// GiB)." Both figures in the first brackets share the unit.
bool free_at_startup(Reading& r) {
  if (r.at(r.body(), "cuda:")) r.device(r.body() + 5);
  const size_t open = r.text().view().substr(0, std::min(r.size(), r.body() + 16)).find('(', r.body());
  if (open != std::string_view::npos) {
    const auto free = real_at(r.text(), open + 1);
    if (free && r.at(free->end, "/")) {
      const auto total = quantity_at(r.text(), free->end + 1, kIec);
      if (total) {
        const size_t digits = r.text().view().substr(0, total->end).find_first_not_of("0123456789.,", free->end + 1);
        // Parses the free figure as if the unit followed it.
        const std::string written(r.text().view().substr(open + 1, free->end - open - 1));
        const std::string unit(r.text().view().substr(digits, total->end - digits));
        if (const auto amount = parse_quantity(written + unit, kIec)) {
          r.message.free_bytes = amount->bytes;
          r.message.figures.push_back({"free", written + " GiB", amount->bytes, amount->resolution});
        }
        r.amount(free->end + 1, kIec, kCapacity);
      }
    }
  }
  if (const auto wanted = r.after("utilization(", r.body(), 120)) {
    const auto fraction = real_at(r.text(), *wanted);
    // The comma after the fraction and the figure after it: "(0.9, 19.84 GiB)".
    if (fraction && r.at(fraction->end, ",")) {
      r.message.gpu_memory_utilization = fraction->value;
      r.amount(fraction->end + 1, kIec, kRequested);
    }
  }
  r.after("usedbyotherprocesses", r.end(), 120);
  starting(r, "vllm_free_startup");
  r.hint("other_processes");
  return true;
}

// "CUDA out of memory occurred when warming up sampler with 1024 dummy requests. Please try lowering `max_num_seqs` or
// `gpu_memory_utilization` when initializing the engine."
bool warm_up(Reading& r) {
  r.after("initializingtheengine", r.body(), 200);
  starting(r, "vllm_warm_up");
  return true;
}

// "Error in memory profiling. Initial free memory 10.5 GiB, current free memory 12.1 GiB. This happens when other
// processes ... release GPU memory"
bool profiling(Reading& r) {
  if (const auto current = r.after("currentfreememory", r.body(), 90)) r.amount(*current, kIec, kFree);
  starting(r, "vllm_profiling");
  r.hint("other_processes");
  return true;
}

}  // namespace

void add_vllm_recognisers(std::vector<Recogniser>& table) {
  table.push_back({"vllm_no_blocks", "noavailablememoryforthecacheblocks", no_blocks});
  table.push_back({"vllm_kv_needed", "toserveatleastonerequestwith", one_request});
  table.push_back({"vllm_max_seq_len", "maxseqlen", sequence_too_long});
  table.push_back({"vllm_free_startup", "freememoryondevice", free_at_startup});
  table.push_back({"vllm_warm_up", "cudaoutofmemoryoccurredwhenwarmingup", warm_up});
  table.push_back({"vllm_profiling", "errorinmemoryprofiling", profiling});
}

}  // namespace headroom::doctor
