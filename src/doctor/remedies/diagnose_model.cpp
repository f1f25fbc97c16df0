// diagnose() with the memory model.
#include "doctor/remedies/remedy.h"

namespace headroom::doctor {

Diagnosis diagnose(const Case& patient) {
  const Software software = patient.software;
  return diagnose(patient, [software](const Job& job, const ModelShape& shape, const std::optional<Gpu>& gpu) {
    return estimate(job, shape, gpu, software);
  });
}

}  // namespace headroom::doctor
