#include "planner/explain_data_order.h"

#include "base/error.h"
#include "passes/length_buckets.h"
#include "passes/packing.h"

namespace headroom {
namespace {

TechniqueReport report_of(const PassInfo& info, std::string value, std::string why) {
  return {std::string(info.name), std::string(kind_name(info.kind)), std::move(value), 0, 0, std::move(why)};
}

TechniqueReport packing_report(const PlanRequest& request, const Candidate& chosen, const Bound& reached) {
  if (!request.packing)
    return report_of(kPacking, "off",
                     "other rows would share a step: taken only when named (--packing true) or allowed");
  PlanRequest plain = request;
  plain.packing = false;
  const Bound bound = Bounder(plain).bound(chosen);
  TechniqueReport report =
      report_of(kPacking, "on", request.data_order_why + "; a sequence of the global batch is several rows");
  report.saves_bytes = bound.arenas.device - reached.arenas.device;
  report.costs_seconds = reached.step_seconds - bound.step_seconds;
  return report;
}

TechniqueReport buckets_report(const PlanRequest& request, const Plan& plan) {
  if (!request.length_buckets)
    return report_of(kLengthBuckets, "off",
                     "other rows would share a step: taken only when named (--group-by-length true) or allowed");
  return report_of(kLengthBuckets, fmt::format("{}", fmt::join(plan.choices.buckets, ",")),
                   request.data_order_why + "; shorter batches run at these lengths in the same arena");
}

}  // namespace

void report_data_order(const PlanRequest& request, const Candidate& chosen, const Bound& reached, Plan& plan) {
  plan.techniques.push_back(packing_report(request, chosen, reached));
  plan.techniques.push_back(buckets_report(request, plan));
}

}  // namespace headroom
