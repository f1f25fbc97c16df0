#include "doctor/model/estimate.h"

#include "doctor/model/train_estimate.h"

namespace headroom::doctor {

Estimate estimate(const Job& job, const ModelShape& shape, const std::optional<Gpu>& gpu, const Software& software) {
  return job.task == Task::train ? estimate_training(job, shape, gpu, software)
                                 : estimate_serving(job, shape, gpu, software);
}

}  // namespace headroom::doctor
