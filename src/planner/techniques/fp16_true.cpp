#include "planner/techniques/precision.h"

namespace headroom::techniques {
namespace {

constexpr const Precision& kPrecision = kFp16TruePrecision;

}  // namespace

constinit const Technique fp16_true{
    .info = kPrecision.technique,
    .option = {"--precision", kPrecision.word, "on"},
    .check = check_switch<kFp16True>,
    .choices = when_asked_for<kFp16True>,
    .model_pass = [](Assembly& assembly, const PlanRequest&, const Candidate&) { narrow_all(assembly, kPrecision); },
    .told = [](const PlanRequest& request,
               const Candidate& chosen) { return true_told(request, chosen, fp16_true, kPrecision); },
};

}  // namespace headroom::techniques
