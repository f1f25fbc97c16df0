#include "doctor/output/batch_script.h"

#include <fmt/format.h>

#include <algorithm>

#include "doctor/remedies/changes.h"
#include "doctor/remedies/figures.h"

namespace headroom::doctor {

std::string batch_script(const Report& report, const std::string& command) {
  const Job job = with_changes(report.patient.job.value_or(Job()), report.diagnosis.set_changes);
  const int64_t nodes = std::max<int64_t>(1, job.nodes.value_or(1)), gpus = std::max<int64_t>(1, job.gpus.value_or(1));
  int64_t host = report.patient.estimate ? report.patient.estimate->host_high_bytes : int64_t{16} << 30;
  for (const Remedy& remedy : report.diagnosis.remedies)
    for (const std::string& name : report.diagnosis.smallest_fitting_set)
      if (remedy.name == name) host += remedy.host_bytes.value_or(0);
  const int64_t gib = (host * gpus * 5 / 4 >> 30) + 1;
  const int64_t cpus = job.grant.cpus.value_or(2 + job.dataloader_workers.value_or(0));
  std::string out = "#!/bin/bash\n";
  out += fmt::format("#SBATCH --nodes={}\n#SBATCH --gpus-per-node={}\n#SBATCH --ntasks-per-node=1\n", nodes, gpus);
  out += fmt::format("#SBATCH --cpus-per-task={}\n#SBATCH --mem={}G\n", cpus * gpus, gib);
  if (!job.grant.partition.empty()) out += fmt::format("#SBATCH --partition={}\n", job.grant.partition);
  if (!job.grant.time_limit.empty()) out += fmt::format("#SBATCH --time={}\n", job.grant.time_limit);
  if (const std::optional<int64_t> need =
          report.diagnosis.bytes_after ? report.diagnosis.bytes_after : report.diagnosis.need_bytes)
    out += fmt::format("# each GPU must have {} or more\n", figure(*need));
  return out + "\nsrun " + command + "\n";
}

}  // namespace headroom::doctor
