// The records of the techniques of --precision, their common parts, and the resulting precision.
#pragma once

#include <string>

#include "passes/precisions.h"
#include "planner/technique.h"

namespace headroom {

namespace techniques {
extern const Technique bf16_mixed, bf16_true, fp16_mixed, fp16_true;

// Products in a narrow type.
std::vector<Setting> mixed_choices(const PlanRequest& request, const Precision& precision);
void narrow_forward(Assembly& assembly, const Precision& precision, const Setting& setting);
Told mixed_told(const PlanRequest& request, const Candidate& chosen, const Technique& technique,
                const Precision& precision);
std::string copies_phrase(const Setting& setting, const Precision& precision);

// Weights in a narrow type.
void narrow_all(Assembly& assembly, const Precision& precision);
Told true_told(const PlanRequest& request, const Candidate& chosen, const Technique& technique,
               const Precision& precision);
}  // namespace techniques

// Setting::form of the mixed precisions: copies of the weights are kept; otherwise weights are rounded when used.
inline constexpr uint8_t kWeightCopies = 1;

// The requested precision: its word, "32-true" for none; or its record, null for none.
std::string precision_of(const PlanRequest& request);
const Precision* narrow_precision_of(const PlanRequest& request);

// A precision other than 32-true pins its technique.
void set_precision(PlanRequest& request, const std::string& precision);

// Whether the loss is multiplied by a scale.
bool scales_loss(const PlanRequest& request);

// Whether the update waits for the norm of all gradients, to clip by it or to know that all of them are finite.
bool update_waits(const PlanRequest& request);

}  // namespace headroom
