#include "planner/techniques/precision.h"

namespace headroom::techniques {
namespace {

constexpr const Precision& kPrecision = kBf16TruePrecision;

}  // namespace

constinit const Technique bf16_true{
    .info = kPrecision.technique,
    .option = {"--precision", kPrecision.word, "on"},
    .ladder = {2},
    .check = check_switch<kBf16True>,
    .choices = when_asked_for<kBf16True>,
    .model_pass = [](Assembly& assembly, const PlanRequest&, const Candidate&) { narrow_all(assembly, kPrecision); },
    .told = [](const PlanRequest& request,
               const Candidate& chosen) { return true_told(request, chosen, bf16_true, kPrecision); },
};

}  // namespace headroom::techniques
