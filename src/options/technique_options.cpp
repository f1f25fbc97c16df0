#include "options/technique_options.h"

#include "base/error.h"
#include "options/option_checks.h"
#include "passes/attention_order.h"
#include "passes/matmul_precision.h"
#include "passes/precisions.h"

namespace headroom {
namespace {

// Without adapters, an option for adapters would be silently ignored and all weights trained.
void refuse_settings_without_adapters(const LoraOptions& lora) {
  const LoraOptions unset;
  const char* given = lora.alpha != unset.alpha                       ? "lora-alpha"
                      : lora.dropout != unset.dropout                 ? "lora-dropout"
                      : lora.rank_stabilised != unset.rank_stabilised ? "lora-rslora"
                      : lora.decomposed != unset.decomposed           ? "use-dora"
                      : lora.targets != unset.targets                 ? "lora-target-modules"
                      : !lora.modules_to_save.empty()                 ? "modules-to-save"
                                                                      : nullptr;
  if (given)
    throw Error(ErrorKind::usage, fmt::format("--{} without --lora-r: no adapters are trained", given),
                "add --lora-r 16, or leave it out");
}

void check_adapters(const TechniqueOptions& o) {
  using namespace option_checks;
  at_least("lora-r", o.lora.rank, 0);
  if (o.lora.rank > 8192) refuse("lora-r", std::to_string(o.lora.rank), "at most 8192");
  real_in("lora-alpha", o.lora.alpha, 0, 1e6);
  real_in("lora-dropout", o.lora.dropout, 0, 0.99);
  if (o.lora.rank == 0) refuse_settings_without_adapters(o.lora);
  if (o.lora.decomposed && o.lora.dropout > 0)
    throw Error(ErrorKind::usage,
                fmt::format("--use-dora and --lora-dropout {}: the layers' own products would be needed again, of "
                            "the dropped inputs",
                            o.lora.dropout),
                "leave out --lora-dropout");
  if (o.lora.rank > 0 && !o.freeze.empty())
    throw Error(ErrorKind::usage, "--freeze and --lora-r together",
                "leave out --freeze: adapters freeze all other weights");
}

std::vector<std::string_view> precision_words() {
  std::vector<std::string_view> words{"32-true"};
  for (const Precision& precision : kPrecisions) words.push_back(precision.word);
  return words;
}

}  // namespace

std::string master_dtype(const TechniqueOptions& options) {
  const Precision* const precision = find_precision(options.precision);
  if (!precision || precision->keeps_fp32) return "float32";
  return precision->narrow == DType::f16 ? "float16" : "bfloat16";
}

void check_options(const TechniqueOptions& o) {
  using namespace option_checks;
  check_adapters(o);
  real_in("max-grad-norm", o.max_grad_norm, 0, 1e30);
  one_of("arithmetic", o.arithmetic, {"free", "fixed"});
  one_of("matmul-precision", o.matmul_precision, {std::begin(kMatmulPrecisionWords), std::end(kMatmulPrecisionWords)});
  one_of("attention-order", o.attention_order, {std::begin(kAttentionOrderWords), std::end(kAttentionOrderWords)});
  one_of("precision", o.precision, precision_words());
  const Precision* const precision = find_precision(o.precision);
  check_options(o.fp16, precision && precision->scales_loss());
}

}  // namespace headroom
