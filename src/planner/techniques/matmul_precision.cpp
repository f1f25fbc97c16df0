#include "planner/techniques/matmul_precision.h"

#include "passes/matmul_precision.h"
#include "planner/techniques/precision.h"

namespace headroom {
namespace techniques {
namespace {

std::vector<Setting> choices(const PlanRequest& request, const Candidate&) {
  return {matmul_precision_of(request) == "highest" ? Setting{} : Setting{1}};
}

// Products of f32 operands on bf16 tiles stand for fp32's but for the ends of its range.
Told told(const PlanRequest& request, const Candidate& chosen) {
  const bool cpu = request.facts.is_cpu(), tiles = request.facts.has_bf16_tiles();
  if (!chosen[matmul_precision].taken())
    return {.value = "highest",
            .why = "changes the arithmetic: taken only when named (--matmul-precision)",
            .also = tiles && precision_of(request) == "32-true"
                        ? "; fp32 products as sums of three bf16 parts: finite operands above 3.396e38 become "
                          "infinite, parts below 2^-126 zero"
                        : ""};
  return {.value = matmul_precision_of(request),
          .why = "named by --matmul-precision",
          .without = chosen.without(matmul_precision),
          .also = cpu && !tiles ? "; without bf16 tiles the rounded operands are multiplied in fp32, which is no faster"
                                : ""};
}

void set(Graph& graph, const PlanRequest& request, const Candidate& candidate) {
  set_matmul_precision(graph, candidate[matmul_precision].taken() ? matmul_precision_of(request) : "highest");
}

}  // namespace

constinit const Technique matmul_precision{
    .info = &kMatmulPrecision,
    .check =
        [](const PlanRequest&, const std::string& setting) {
          check_setting(kMatmulPrecision, setting, {"highest", "high", "medium"});
        },
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
