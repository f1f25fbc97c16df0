#include "planner/techniques/matmul_precision.h"

#include "base/error.h"
#include "passes/fp8_products.h"
#include "passes/matmul_precision.h"
#include "planner/techniques/precision.h"

namespace headroom {
namespace techniques {
namespace {

std::vector<Setting> choices(const PlanRequest& request, const Candidate&) {
  return {matmul_precision_of(request) == "highest" ? Setting{} : Setting{1}};
}

void check(const PlanRequest& request, const std::string& setting) {
  check_setting(kMatmulPrecision, setting, {std::begin(kMatmulPrecisionWords), std::end(kMatmulPrecisionWords)});
  if (setting != "fp8") return;
  if (const std::string refusal = fp8_refusal(request.facts); !refusal.empty())
    throw Error(ErrorKind::usage, fmt::format("--matmul-precision fp8: {}", refusal),
                "leave it out: --precision bf16-mixed and bf16-true multiply in bf16");
  if (const std::string precision = precision_of(request); !precision.starts_with("bf16"))
    throw Error(ErrorKind::usage,
                fmt::format("--matmul-precision fp8 needs bf16 operands; --precision {} has none", precision),
                "--precision bf16-mixed --matmul-precision fp8, or --matmul-precision medium");
}

// Products of f32 operands on bf16 tiles count as fp32's, which they equal except at the ends of the range.
Told told(const PlanRequest& request, const Candidate& chosen) {
  const bool cpu = request.facts.is_cpu(), tiles = request.facts.has_bf16_tiles();
  if (!chosen[matmul_precision].taken())
    return {.value = "highest",
            .why = "changes the arithmetic: used only when named (--matmul-precision)",
            .also = tiles && precision_of(request) == "32-true"
                        ? "; fp32 products as sums of three bf16 parts: finite operands above 3.396e38 become "
                          "infinite, parts below 2^-126 zero"
                        : ""};
  return {
      .value = matmul_precision_of(request),
      .why = "named by --matmul-precision",
      .without = chosen.without(matmul_precision),
      .also =
          matmul_precision_of(request) == "fp8"
              ? "; used only where the profile predicts a gain; unmeasured fp8 is assumed twice as fast as bf16, plus "
                "rounding"
          : cpu && !tiles ? "; without bf16 tiles the rounded operands are multiplied in fp32, which is no faster"
                          : ""};
}

void set(Graph& graph, const PlanRequest& request, const Candidate& candidate) {
  const std::string precision = candidate[matmul_precision].taken() ? matmul_precision_of(request) : "highest";
  if (precision == "fp8")
    multiply_in_fp8(graph, request.profile);
  else
    set_matmul_precision(graph, precision);
}

}  // namespace

constinit const Technique matmul_precision{
    .info = &kMatmulPrecision,
    .option = {"--matmul-precision"},
    .usual = "high",
    .check = check,
    .choices = choices,
    .runs_always = true,
    .pass = set,
    .told = told,
    .record = [](const PlanRequest& request, const Candidate&,
                 Choices& out) { out.set("matmul_precision", matmul_precision_of(request)); },
};

}  // namespace techniques

std::string matmul_precision_of(const PlanRequest& request) {
  const std::string said = pin(request, kMatmulPrecision.name);
  return said.empty() ? "highest" : said;
}

}  // namespace headroom
