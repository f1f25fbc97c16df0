#include "planner/techniques/precision.h"

namespace headroom::techniques {
namespace {

constexpr const Precision& kPrecision = kBf16MixedPrecision;

}  // namespace

constinit const Technique bf16_mixed{
    .info = kPrecision.technique,
    .option = {"--precision", kPrecision.word, "on"},
    .ladder = {1},
    .check = check_switch<kBf16Mixed>,
    .choices = [](const PlanRequest& request, const Candidate&) { return mixed_choices(request, kPrecision); },
    .model_pass = [](Assembly& assembly, const PlanRequest&,
                     const Candidate& candidate) { narrow_forward(assembly, kPrecision, candidate[bf16_mixed]); },
    .told = [](const PlanRequest& request,
               const Candidate& chosen) { return mixed_told(request, chosen, bf16_mixed, kPrecision); },
    .phrase = [](const Setting& setting) { return copies_phrase(setting, kPrecision); },
    .record =
        [](const PlanRequest& request, const Candidate& chosen, Choices& out) {
          out.set("precision", precision_of(request));
          out.set("weight_copies",
                  chosen[bf16_mixed].form == kWeightCopies || chosen[fp16_mixed].form == kWeightCopies);
        },
};

}  // namespace headroom::techniques
