// diagnose() with the memory model.
#include "doctor/remedies/remedy.h"

namespace headroom::doctor {

Diagnosis diagnose(const Case& incident) {
  const Software software = incident.software;
  return diagnose(incident, [software](const Job& job, const ModelShape& shape, const std::optional<Gpu>& gpu) {
    return estimate(job, shape, gpu, software);
  });
}

}  // namespace headroom::doctor
