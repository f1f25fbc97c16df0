#include "planner/techniques/precision.h"

namespace headroom::techniques {
namespace {

constexpr const Precision& kPrecision = kFp16MixedPrecision;

}  // namespace

constinit const Technique fp16_mixed{
    .info = kPrecision.technique,
    .option = {"--precision", kPrecision.word, "on"},
    .check = check_switch<kFp16Mixed>,
    .choices = [](const PlanRequest& request, const Candidate&) { return mixed_choices(request, kPrecision); },
    .model_pass = [](Assembly& assembly, const PlanRequest&,
                     const Candidate& candidate) { narrow_forward(assembly, kPrecision, candidate[fp16_mixed]); },
    .told = [](const PlanRequest& request,
               const Candidate& chosen) { return mixed_told(request, chosen, fp16_mixed, kPrecision); },
    .phrase = [](const Setting& setting) { return copies_phrase(setting, kPrecision); },
};

}  // namespace headroom::techniques
