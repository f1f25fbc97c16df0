#include "doctor/output/batch_script.h"

#include <fmt/format.h>

#include <algorithm>

#include "doctor/remedies/changes.h"
#include "doctor/remedies/figures.h"

namespace headroom::doctor {

namespace {

// Whether the line states a resource that doctor's own lines state instead.
bool asks_for_resources(const std::string& line) {
  for (const char* option : {"--gres", "--gpus", "-G", "--mem", "--cpus-per-task", "--cpus-per-gpu", "-c ",
                             "-c=", "--nodes", "-N", "--ntasks", "-n "})
    if (line.find(std::string(" ") + option) != std::string::npos) return true;
  return false;
}

std::string resource_lines(const Report& report) {
  const Job job = with_changes(report.incident.job.value_or(Job()), report.diagnosis.set_changes);
  const int64_t nodes = std::max<int64_t>(1, job.devices.nodes.value_or(1)),
                gpus = std::max<int64_t>(1, job.devices.gpus.value_or(1));
  int64_t host = report.incident.estimate ? report.incident.estimate->host_high_bytes : int64_t{16} << 30;
  for (const Remedy& remedy : report.diagnosis.remedies)
    for (const std::string& name : report.diagnosis.proposed_set())
      if (remedy.name == name) host += remedy.host_bytes.value_or(0);
  const int64_t gib = (host * gpus * 5 / 4 >> 30) + 1;
  const int64_t cpus = job.devices.grant.cpus.value_or(2 + job.load.workers.value_or(0));
  std::string out =
      fmt::format("#SBATCH --nodes={}\n#SBATCH --gpus-per-node={}\n#SBATCH --ntasks-per-node=1\n", nodes, gpus);
  out += fmt::format("#SBATCH --cpus-per-task={}\n#SBATCH --mem={}G\n", cpus * gpus, gib);
  if (const std::optional<int64_t> need =
          report.diagnosis.bytes_after ? report.diagnosis.bytes_after : report.diagnosis.need_bytes)
    out += fmt::format("# each GPU must have {} or more\n", figure(*need));
  return out;
}

// The user's script with doctor's lines in place of its lines that ask for resources.
std::string own_script(const std::string& script, const std::string& resources) {
  std::string out;
  bool inserted = false;
  size_t start = 0;
  while (start < script.size()) {
    const size_t end = std::min(script.find('\n', start), script.size());
    const std::string line = script.substr(start, end - start);
    start = end + 1;
    if (!inserted && !line.starts_with("#!")) {
      out += resources;
      inserted = true;
    }
    if (!line.starts_with("#SBATCH") || !asks_for_resources(line)) out += line + "\n";
  }
  return out;
}

}  // namespace

std::string batch_script(const Report& report, const std::string& command) {
  const std::string resources = resource_lines(report);
  if (command.find("#SBATCH") != std::string::npos) return own_script(command, resources);
  std::string out = "#!/bin/bash\n" + resources;
  if (report.incident.job) {
    const Grant& grant = report.incident.job->devices.grant;
    if (!grant.partition.empty()) out += fmt::format("#SBATCH --partition={}\n", grant.partition);
    if (!grant.time_limit.empty()) out += fmt::format("#SBATCH --time={}\n", grant.time_limit);
  }
  return out + "\nsrun " + command + "\n";
}

}  // namespace headroom::doctor
