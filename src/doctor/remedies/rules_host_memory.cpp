// More host memory: how much, if it can be computed, and in the terms of whatever limits it (T43).
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "doctor/remedies/figures.h"
#include "doctor/remedies/rules.h"

namespace headroom::doctor {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

// Who sets the limit.
enum class Grantor { slurm, kubernetes, docker, wsl, machine };

Grantor grantor_of(const CaseView& s) {
  const std::string_view framework = s.message() ? std::string_view(s.message()->framework) : std::string_view();
  const JobResources& job = s.incident().resources.job;
  if (framework == "slurm" || job.memory_requested_bytes || job.memory_requested_per_cpu_bytes ||
      !s.setup_says("#sbatch|srun ").empty())
    return Grantor::slurm;
  if (framework == "kubernetes" || !s.setup_says("kind: pod|kind: deployment|containers:|limits:").empty())
    return Grantor::kubernetes;
  if (!s.log_says("microsoft-standard-wsl|wsl2").empty()) return Grantor::wsl;
  if (!s.setup_says("docker run|docker-compose|shm_size").empty() || !s.log_says("docker|container").empty())
    return Grantor::docker;
  return Grantor::machine;
}

struct Amount {
  int64_t gib = 0;  // 0: unknown
  bool estimated = false;
  std::string why;
};

// "limits: ... memory: 500Mi" of a container's resources, in lower case.
std::optional<int64_t> kubernetes_limit(const std::string& setup) {
  const size_t limits = setup.find("limits:");
  const size_t memory = limits == std::string::npos ? limits : setup.find("memory:", limits);
  if (memory == std::string::npos || memory - limits > 200) return std::nullopt;
  const size_t digits = setup.find_first_of("0123456789", memory);
  if (digits == std::string::npos || digits - memory > 12) return std::nullopt;
  char* end = nullptr;
  const double number = std::strtod(setup.c_str() + digits, &end);
  if (number <= 0 || number > 1e6) return std::nullopt;
  const double unit = *end == 'g' ? 1024.0 * 1024 * 1024 : *end == 'm' ? 1024.0 * 1024 : 1;
  return static_cast<int64_t>(number * unit);
}

// The need of all processes of a node by the estimate. If the job failed within that, or there is no estimate, the
// message tells only that it was more than the limit.
Amount amount_of(const CaseView& s) {
  const std::optional<int64_t> limit = s.balance().limit;
  if (const std::optional<Estimate>& estimate = s.incident().estimate) {
    const int64_t processes = processes_per_node(s.job());
    const int64_t low = estimate->host_low_bytes * processes, high = estimate->host_high_bytes * processes;
    if (!limit || high > *limit)
      return {high / kGiB + 1, true,
              fmt::format("{} to {} estimated for {} process{} of a node", figure(low), figure(high), processes,
                          processes == 1 ? "" : "es")};
  }
  const std::optional<int64_t> granted = limit ? limit : kubernetes_limit(s.incident().setup_text);
  const std::optional<int64_t> held = s.balance().observed ? s.balance().observed : s.message()->process_bytes;
  const int64_t least = std::max(granted.value_or(0), held.value_or(0));
  if (least <= 0) return {0, false, "how much it wants is not printed: `free -h` while it runs tells"};
  return {least / kGiB + least / kGiB / 2 + 1, false,
          fmt::format("a try: it wants more than {}, how much more is not known", figure(least))};
}

// "--mem-per-cpu=4096M" in lower case; Slurm's default unit is MiB.
std::optional<int64_t> per_cpu_bytes(const CaseView& s) {
  if (const auto stated = s.incident().resources.job.memory_requested_per_cpu_bytes) return stated;
  const std::string& setup = s.incident().setup_text;
  const size_t at = setup.find("mem-per-cpu");
  if (at == std::string::npos) return std::nullopt;
  char* end = nullptr;
  const double number = std::strtod(setup.c_str() + at + std::string_view("mem-per-cpu=").size(), &end);
  if (number <= 0 || number > 1e9) return std::nullopt;
  return static_cast<int64_t>(number * (*end == 'g' ? kGiB : int64_t{1} << 20));
}

std::string slurm_words(const CaseView& s, const Amount& amount) {
  const std::optional<int64_t> each = per_cpu_bytes(s);
  if (!each) return amount.gib ? fmt::format("#SBATCH --mem={}G", amount.gib) : "#SBATCH --mem=<more>G";
  const int64_t cpus = std::max<int64_t>(1, s.balance().limit.value_or(*each) / *each);
  const int64_t wanted = amount.gib ? (amount.gib + cpus - 1) / cpus : *each * 3 / 2 / kGiB + 1;
  return fmt::format("#SBATCH --mem-per-cpu={}G, or more --cpus-per-task", wanted);
}

std::string words(const CaseView& s, const Amount& amount) {
  const std::string gib = amount.gib ? std::to_string(amount.gib) : "<more>";
  switch (grantor_of(s)) {
    case Grantor::slurm:
      return slurm_words(s, amount);
    case Grantor::kubernetes:
      return fmt::format("resources.limits.memory: {}Gi", gib);
    case Grantor::docker:
      return fmt::format("docker run --memory={}g; Docker Desktop: Settings > Resources > Memory", gib);
    case Grantor::wsl:
      return fmt::format("%UserProfile%\\.wslconfig: [wsl2] memory={}GB; then wsl --shutdown", gib);
    default:
      // A part more than there is would be a guess: only an estimate names a size.
      return amount.estimated ? fmt::format("more host memory (RAM): up to {} GiB; swap bridges a short peak", gib)
                              : "more host memory (RAM), or swap for a short peak";
  }
}

}  // namespace

void more_host_memory(const CaseView& s, Findings& findings) {
  if (s.pool() != Pool::host || !s.message()) return;
  const Amount amount = amount_of(s);
  Remedy remedy = make_remedy(s, "host-memory", {{"gib", std::to_string(amount.gib)}}, {}, amount.why);
  remedy.set = words(s, amount);
  remedy.settings.clear();
  if (grantor_of(s) == Grantor::slurm)
    remedy.caveats.push_back("`seff JOB` or `sacct -j JOB -o MaxRSS` says what it really used");
  findings.offer(std::move(remedy));
}

}  // namespace headroom::doctor
