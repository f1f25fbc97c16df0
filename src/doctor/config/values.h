// The many spellings of optimizers, number types, kernels and sharding, and the one name that a Job uses for each.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "doctor/config/draft.h"

namespace headroom::doctor {

// "adamw_bnb_8bit", "bitsandbytes.optim.PagedAdamW8bit", "FusedAdam", "AdamW" -> adamw_8bit, paged_adamw_8bit, adamw,
// adamw. An unknown name is returned in lower case without its module.
std::string canonical_optimizer(std::string_view text);
// "bf16", "torch.bfloat16", "half" -> bfloat16, bfloat16, float16; also float32, float64, fp8, int8, auto. nullopt for
// any other text.
std::optional<std::string> canonical_dtype(std::string_view text);
// flash_attention_2, flash_attention_3, sdpa, eager, flex_attention, xformers, sage_attention, ... A misspelling
// ("flash_attention2") is corrected and noted in the draft.
std::string canonical_attention(Draft& draft, const Setting& setting);
// FULL_SHARD, ShardingStrategy.SHARD_GRAD_OP, "1" ... -> Sharding. nullopt for any other text.
std::optional<Sharding> fsdp_sharding(std::string_view text);
std::optional<Sharding> zero_stage(std::string_view text);  // 0..3, "ZERO_3", "stage3"
std::optional<Offload> offload_device(std::string_view text);
// BACKWARD_PRE, BackwardPrefetch.BACKWARD_POST, NO_PREFETCH, ... -> whether there is a prefetch. Notes
// BackwardPrefetch.NONE.
std::optional<bool> backward_prefetch(Draft& draft, const Setting& setting);

}  // namespace headroom::doctor
