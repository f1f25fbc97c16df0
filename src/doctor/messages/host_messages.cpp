// Killers of a process that uses too much host memory (the kernel, Slurm, Kubernetes), and how launchers report it.
#include <algorithm>

#include "doctor/messages/recognisers.h"

namespace headroom::doctor {
namespace {

void host(Reading& r, std::string_view framework, std::string_view format, std::string_view evidence) {
  r.identify(framework, format);
  r.phase("host_ram", evidence);
  r.hint("host_ram");
}

// "Out of memory: Killed process 698405 (python) total-vm:49978204kB, anon-rss:12918388kB, file-rss:68668kB,
// shmem-rss:53352kB, ...": what the process held is the sum of the three resident parts. kB means 1024.
bool killed_process(Reading& r) {
  const auto pid = whole_number_at(r.text(), r.body());
  if (!pid || (!r.at(pid->end, "(") && !r.at(pid->end, ","))) return false;
  r.message.pid = pid->value;
  r.extend(pid->end);
  // Up to the next killed process.
  const size_t next = r.text().view().find("killedprocess", r.body());
  const size_t limit = std::min({r.size(), next, r.body() + 400});
  int64_t resident = 0;
  bool anonymous = false, cut = false;
  for (const std::string_view part : {"anon-rss:", "file-rss:", "shmem-rss:"}) {
    const size_t at = r.text().view().substr(0, limit).find(part, pid->end);
    if (at == std::string_view::npos) continue;
    const auto amount = quantity_at(r.text(), at + part.size(), kSi);
    cut |= !amount;
    if (!amount || amount->bytes > (int64_t{1} << 60)) continue;
    resident += amount->bytes;
    anonymous |= part[0] == 'a';
    r.extend(amount->end);
  }
  // A line cut before its last resident part would give too small a sum; kernels before 4.5 do not print the third
  // part.
  const bool last = r.text().view().substr(0, limit).find("shmem-rss:", pid->end) != std::string_view::npos;
  const bool ended = r.end() < r.size() && r.text().line_gap(r.end());
  if (anonymous && !cut && (last || ended)) r.message.process_bytes = resident;
  r.begin_at(r.trigger());
  host(r, "linux-oom", r.near_before(r.trigger(), "memorycgroup", 40) ? "dmesg_cgroup" : "dmesg",
       "the kernel's OOM killer");
  return true;
}

// "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),...,task=python3,pid=25315,uid=0"
bool oom_kill(Reading& r) {
  if (const auto pid = r.after("pid=", r.body(), 600)) r.message.pid = r.number(*pid);
  host(r, "linux-oom", "dmesg_constraint", "the kernel's OOM killer");
  return true;
}

// "python invoked oom-killer: gfp_mask=..."
bool invoked(Reading& r) {
  host(r, "linux-oom", "dmesg_invoked", "the kernel's OOM killer");
  return true;
}

// "memory: usage 8388608kB, limit 8388608kB, failcnt 123" of a control group's report
bool cgroup_usage(Reading& r) {
  const auto used = quantity_at(r.text(), r.body(), kSi);
  if (!used || !r.at(used->end, ",limit")) return false;
  const auto limit = quantity_at(r.text(), used->end + 6, kSi);
  if (!limit || !r.at(limit->end, ",failcnt")) return false;
  r.amount(used->end + 6, kSi, kCapacity);
  r.extend(limit->end + 8);
  host(r, "linux-oom", "cgroup_usage", "a control group's limit");
  return true;
}

// "A process of this unit has been killed by the OOM killer." of systemd
bool systemd(Reading& r) {
  host(r, "linux-oom", "systemd", "the kernel's OOM killer");
  return true;
}

// "slurmstepd: error: Detected 1 oom_kill event in StepId=11300781.0. Some of the step tasks have been OOM Killed.",
// "... oom-kill event(s) in step 3495064.0 cgroup. ..."; srun's lines and those of the job's end belong to it.
bool slurm_detected(Reading& r) {
  const auto event = r.after("event", r.body(), 0);
  if (!event) return false;
  if (!r.after("out-of-memoryhandler.", *event, 160)) r.after("beenoomkilled.", *event, 120);
  if (const auto task = r.after("srun:error:", r.end(), 200)) r.after("outofmemory", *task, 80);
  host(r, "slurm", "slurm", "Slurm's memory limit");
  return true;
}

// "srun: error: node: task 0: Out Of Memory", "State: OUT_OF_MEMORY"
bool slurm_task(Reading& r) {
  if (!r.follows("outofmemory", r.body(), 100)) return false;
  r.after("outofmemory", r.body(), 100);
  host(r, "slurm", "slurm_task", "Slurm's memory limit");
  return true;
}
bool slurm_state(Reading& r) {
  host(r, "slurm", "slurm_state", "Slurm's memory limit");
  return true;
}

// "slurmstepd: error: Step 123.0 exceeded memory limit (12345678 > 8388608), being killed": KiB
bool slurm_limit(Reading& r) {
  const size_t at = r.body();
  if (!r.at(at, "(") || !r.near_before(r.trigger(), "slurm", 60)) return false;
  const auto used = whole_number_at(r.text(), at + 1);
  if (used && r.at(used->end, ">") && used->value < (int64_t{1} << 50)) {
    r.message.process_bytes = used->value * 1024;
    const auto limit = whole_number_at(r.text(), used->end + 1);
    if (limit && limit->value < (int64_t{1} << 50)) r.message.capacity_bytes = limit->value * 1024;
    if (limit) r.extend(limit->end);
  }
  r.after("beingkilled", at, 80);
  host(r, "slurm", "slurm_limit", "Slurm's memory limit");
  return true;
}
bool slurm_job_limit(Reading& r) {
  host(r, "slurm", "slurm_limit", "Slurm's memory limit");
  return true;
}

// "terminated with exit code (137)", "Reason: OOMKilled", "Exit Code: 137"
bool kubernetes_137(Reading& r) {
  if (r.number(r.at(r.body(), "(") ? r.body() + 1 : r.body(), true) != 137) return false;
  r.after("message:", r.body(), 40);
  host(r, "kubernetes", "k8s_137", "exit code 137: killed");
  return true;
}
bool kubernetes_exit(Reading& r) {
  if (r.number(r.body(), true) != 137) return false;
  // "executor failed running [...]: exit code: 137" of docker's builder
  const bool builder = r.near_before(r.trigger(), "executorfailedrunning", 600) ||
                       r.near_before(r.trigger(), "didnotcompletesuccessfully:", 40);
  if (builder) {
    host(r, "launcher", "exit_137", "exit code 137: killed");
    return true;
  }
  host(r, "kubernetes", "k8s_137", "exit code 137: killed");
  return true;
}
bool kubernetes_oom(Reading& r) {
  host(r, "kubernetes", "k8s_oomkilled", "OOMKilled");
  return true;
}

// "The node was low on resource: memory. [Threshold quantity: 100Mi, available: 50Mi.] Container main was using 12Gi,
// request is 8Gi"
bool kubernetes_evicted(Reading& r) {
  if (const auto available = r.after("available:", r.body(), 60)) r.amount(*available, kLetter, kFree);
  if (const auto use = r.after("wasusing", r.body(), 140)) r.amount(*use, kLetter | kBare, kProcess);
  host(r, "kubernetes", "k8s_evicted", "eviction");
  return true;
}

// "(exitcode: -9) local_rank: 3 (pid: 812917) of binary: python" of torchrun
bool torchelastic(Reading& r) {
  if (const auto rank = r.after("local_rank:", r.body(), 8)) {
    if (const auto value = r.number(*rank); value && *value < 100000 && !r.message.rank) {
      r.message.rank = static_cast<int>(*value);
    }
  }
  if (const auto pid = r.after("(pid:", r.body(), 32)) r.message.pid = r.number(*pid);
  host(r, "launcher", "torchelastic", "signal 9");
  return true;
}

// "exits with return code = -9", "died with <Signals.SIGKILL: 9>", "Signal 9 (SIGKILL) received by PID 123", "exited on
// signal 9 (Killed)", "finished with exit code 137"
bool launcher(Reading& r) {
  if (const auto pid = r.after("receivedbypid", r.body(), 24)) r.message.pid = r.number(*pid);
  host(r, "launcher", "sigkill", "signal 9");
  return true;
}
// "CPU Virtual Memory:  used = 60.5 GB, percent = 96.4%" of DeepSpeed, when almost nothing is left
bool virtual_memory(Reading& r) {
  const auto percent = r.after("percent=", r.body(), 24);
  const auto share = percent ? real_at(r.text(), *percent, true) : std::nullopt;
  if (!share || share->value < 90) return false;
  r.amount(r.body(), kIec | kAnyBinary, kProcess);
  host(r, "launcher", "virtual_memory", "the host's memory is nearly full");
  return true;
}

// "Killing subprocess 11961" of DeepSpeed's launcher, after a process ended without a message
bool killing_others(Reading& r) {
  if (!r.number(r.body(), true)) return false;
  host(r, "launcher", "killed_rank", "a process ended without a traceback");
  return true;
}

bool launcher_137(Reading& r) {
  if (r.number(r.body(), true) != 137) return false;
  host(r, "launcher", "exit_137", "exit code 137: killed");
  return true;
}

// "error code -9", "returned non-zero exit status -9": the negative number of the signal that ended a child
bool ended_by_9(Reading& r) {
  if (r.number(r.body(), true) != 9) return false;
  host(r, "launcher", "sigkill", "signal 9");
  return true;
}

// "run.sh: line 5: 12345 Killed   python train.py", or "Killed" alone on its line
bool shell(Reading& r) {
  const size_t line = r.trigger();
  const bool starts = line == 0 || r.text().line_gap(line);
  const bool ends = r.body() >= r.size() || r.text().line_gap(r.body());
  bool numbered = false;
  if (!starts && line > 0) {
    // "line 5: 12345 Killed": digits before, and "line" a few characters before those.
    const char c = r.text()[line - 1];
    numbered = c >= '0' && c <= '9' && r.near_before(line, "line", 40) && r.text().gap(line);
  }
  if (!(starts && ends) && !numbered) return false;
  host(r, "launcher", "shell_killed", "signal 9");
  return true;
}

// "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\n Memory on the node (...)
// where the task (..., memory used=12.18GB) was running was 21.91GB / 33.28GB (0.658192), ..." GB means 1024^3.
bool ray(Reading& r) {
  if (const auto used = r.after("memoryused=", r.body(), 400)) r.amount(*used, kSi, kProcess);
  if (const auto was = r.after("wasrunningwas", r.body(), 500)) {
    const auto busy = quantity_at(r.text(), *was, kSi);
    if (busy && r.at(busy->end, "/")) r.amount(busy->end + 1, kSi, kCapacity);
    r.after("thresholdof", *was, 100);
  }
  host(r, "launcher", "ray", "Ray's memory monitor");
  return true;
}

bool ray_pressure(Reading& r) {
  host(r, "launcher", "ray", "Ray's memory monitor");
  return true;
}

// "Your session crashed after using all available RAM." (Colab), "Your notebook tried to allocate more memory than is
// available. It has restarted." (Kaggle)
bool notebook(Reading& r) {
  host(r, "launcher", "notebook", "the notebook's host ran out of memory");
  return true;
}

}  // namespace

void add_host_recognisers(std::vector<Recogniser>& table) {
  table.push_back({"killed_process", "killedprocess", killed_process});
  table.push_back({"killed_process", "outofmemory:killprocess", killed_process});
  table.push_back({"oom_kill", "oom-kill:constraint=", oom_kill});
  table.push_back({"invoked", "invokedoom-killer:", invoked});
  table.push_back({"cgroup_usage", "memory:usage", cgroup_usage});
  table.push_back({"systemd", "killedbytheoomkiller", systemd});
  table.push_back({"slurm_detected", "oom_kill", slurm_detected});
  table.push_back({"slurm_detected", "oom-kill", slurm_detected});
  table.push_back({"slurm_task", "srun:error:", slurm_task});
  table.push_back({"slurm_state", "state:out_of_memory", slurm_state});
  table.push_back({"slurm_limit", "exceededmemorylimit", slurm_limit});
  table.push_back({"slurm_limit", "exceededjobmemorylimit", slurm_job_limit});
  table.push_back({"slurm_limit", "exceededstepmemorylimit", slurm_job_limit});
  table.push_back({"kubernetes_137", "terminatedwithexitcode", kubernetes_137});
  table.push_back({"kubernetes_exit", "exitcode:", kubernetes_exit});
  table.push_back({"kubernetes_exit", "\"exitcode\":", kubernetes_exit});
  table.push_back({"kubernetes_oom", "oomkilled", kubernetes_oom});
  table.push_back({"kubernetes_evicted", "lowonresource:memory", kubernetes_evicted});
  table.push_back({"torchelastic", "exitcode:-9", torchelastic});
  for (const std::string_view words :
       {"returncode=-9", "returncode:-9", "signals.sigkill:9", "signal9(sigkill)", "signal9(killed)", "sigkill(-9)",
        "exitcode-9", "exitedwithcode-9", "terminatedbysigkill", "wassentsigkill"}) {
    table.push_back({"launcher", words, launcher});
  }
  for (const std::string_view words : {"finishedwithexitcode", "exitedwithcode", "exitwithstatuscode",
                                       "exitedwithstatuscode", "returnedexitstatus", "exitstatus:", "exitstatus"}) {
    table.push_back({"launcher_137", words, launcher_137});
  }
  for (const std::string_view words :
       {"errorcode-", "errorcode:-", "errorcode=-", "statuscode-", "codeof-", "exitstatus-", "exitstatus:-",
        "exitstatus=-", "exitedwith-", "returncode-", "退出码-", "退出码:-", "退出码为-", "終了コード-"}) {
    table.push_back({"launcher_9", words, ended_by_9});
  }
  table.push_back({"virtual_memory", "cpuvirtualmemory:used=", virtual_memory});
  table.push_back({"killed_rank", "killingsubprocess", killing_others});
  table.push_back({"ray", "thenoderunninglowonmemory", ray});
  table.push_back({"ray", "killedduetomemorypressure(oom)", ray_pressure});
  table.push_back({"notebook", "crashedafterusingallavailableram", notebook});
  table.push_back({"notebook", "triedtoallocatemorememorythanisavailable", notebook});
  table.push_back({"shell", "killed", shell});
}

}  // namespace headroom::doctor
