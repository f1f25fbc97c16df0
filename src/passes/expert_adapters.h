// PEFT's adapters in a layer with experts: transformers 5 keeps the gates and ups of all experts as one parameter,
// gate_up_proj [experts, 2 width, in], and the downs as another, down_proj. An adapter of a parameter has two matrices
// per expert; an expert's gate and up share one A.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

namespace headroom {

struct LoraOptions;

enum class ExpertPart { gate, up, down };

// A weight of one expert or, with "*" for the expert, of all.
struct ExpertWeight {
  std::string module;  // as transformers 5 calls it: "model.layers.0.mlp.experts"
  std::string expert;  // "7" or "*"
  ExpertPart part;

  // "model.layers.0.mlp.experts.gate_up_proj"
  std::string parameter() const;
};

// Parses names like "model.layers.0.block_sparse_moe.experts.7.w1.weight"; nothing for other weights.
std::optional<ExpertWeight> expert_weight(std::string_view name);

// A checkpoint's name as in transformers 5: Mixtral's block_sparse_moe is mlp.
std::string transformers_name(std::string_view name);

// Names of adapters in the plan: A [experts, rank, in] of a parameter, B [experts, out, rank] of each of its parts.
std::string expert_lora_a(const ExpertWeight& weight);
std::string expert_lora_b(const ExpertWeight& weight);

// The factor of an adapter's products: alpha / rank, or alpha / sqrt(rank) if rank-stabilised.
double adapter_factor(double alpha, int64_t rank, bool rank_stabilised);

// The experts' weights that an adapter's targets name, by PEFT's rules. A target whose last part is gate_up_proj names
// the parameter: rank r. Others (w1 w3, gate_proj up_proj, experts, all-linear) name its two parts: twice the rank and
// twice alpha, in every layer.
class ExpertTargets {
 public:
  // `weights`: names of all experts' weights, with their "*". Throws Error(usage) for a gate without its up, or an up
  // without its gate.
  ExpertTargets(std::span<const std::string> weights, const LoraOptions& options);

  // Rank and factor of a weight's adapter; rank 0: none.
  struct Scale {
    int64_t rank = 0;
    double factor = 0;
  };
  Scale of(const ExpertWeight& weight) const;
  // Whether gate_up_proj has twice the rank.
  bool doubled() const { return doubled_; }
  // Whether a target names any expert's weight.
  bool means(const std::string& target) const { return used_.contains(target); }

 private:
  const LoraOptions& options_;
  std::set<std::string> parameters_, used_;
  bool doubled_ = false;
};

}  // namespace headroom
