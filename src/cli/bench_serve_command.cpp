#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "base/error.h"
#include "bench_serve/load_summary.h"
#include "cli/command.h"
#include "cli/messages.h"
#include "cli/output_file.h"
#include "cli/signals.h"
#include "cli/terminal.h"

namespace headroom {
namespace {

struct BenchArguments {
  bench::LoadOptions load;
  std::string endpoint = "completions";
  std::string rate = "inf";
  std::optional<int64_t> num_prompts;
  std::optional<int64_t> pid;
  std::string cgroup, json, html;
  bool quiet = false;
};

void add_server(CLI::App& app, BenchArguments& a) {
  constexpr const char* kGroup = "Server";
  scalar(app, "--base-url", a.load.base_url, "the server's address: http://HOST:PORT")->group(kGroup)->required();
  scalar(app, "--endpoint", a.endpoint, "completions or chat")->capture_default_str()->group(kGroup);
  scalar(app, "--model", a.load.model, "the model's name in requests (default: the first of /v1/models)")
      ->group(kGroup);
  scalar(app, "--api-key", a.load.api_key, "sent as Authorization: Bearer KEY (default: OPENAI_API_KEY)")
      ->group(kGroup);
  scalar(app, "--timeout", a.load.timeout, "seconds after which a request counts as failed")
      ->capture_default_str()
      ->group(kGroup);
}

void add_load(CLI::App& app, BenchArguments& a) {
  constexpr const char* kGroup = "Load";
  scalar(app, "--num-prompts", a.num_prompts, "requests to send (default: 1000; with --duration no limit)")
      ->group(kGroup);
  scalar(app, "--duration", a.load.duration, "seconds after which no new request is sent")->group(kGroup);
  scalar(app, "--request-rate", a.rate, "requests per second; inf: all at once, or as --max-concurrency allows")
      ->capture_default_str()
      ->group(kGroup);
  scalar(app, "--burstiness", a.load.burstiness,
         "shape of the gamma distribution of gaps between arrivals; 1: a Poisson process, less: bursts")
      ->capture_default_str()
      ->group(kGroup);
  scalar(app, "--max-concurrency", a.load.max_concurrency, "most requests in flight at once (default: no limit)")
      ->group(kGroup);
  scalar(app, "--num-warmups", a.load.num_warmups, "requests sent before the measured ones")
      ->capture_default_str()
      ->group(kGroup);
  scalar(app, "--seed", a.load.seed, "random seed for arrivals, lengths and prompts")
      ->capture_default_str()
      ->group(kGroup);
}

void add_requests(CLI::App& app, BenchArguments& a) {
  constexpr const char* kGroup = "Requests";
  const auto add = [&](const char* name, auto& value, const char* help) {
    scalar(app, name, value, help)->capture_default_str()->group(kGroup);
  };
  add("--random-input-len", a.load.random_input_len, "tokens of a random prompt");
  add("--random-output-len", a.load.random_output_len, "max_tokens of a request");
  add("--random-range-ratio", a.load.random_range_ratio, "lengths are uniform within +- this share; from 0 to below 1");
  add("--random-prefix-len", a.load.random_prefix_len, "tokens in front of every prompt, the same for all");
  scalar(app, "--dataset,--dataset-path", a.load.dataset,
         "take requests from JSON lines instead: prompt or messages, max_tokens and any other fields of a request")
      ->type_name("FILE")
      ->group(kGroup);
  add("--temperature", a.load.temperature, "sampling temperature; 0: greedy");
  app.add_flag("--ignore-eos", a.load.ignore_eos, "ask for answers of full length (an extension of vLLM's)")
      ->group(kGroup);
}

void add_output(CLI::App& app, BenchArguments& a) {
  constexpr const char* kGroup = "What is measured and written";
  scalar(app, "--pid", a.pid, "watch the memory of this local process")->group(kGroup);
  scalar(app, "--cgroup", a.cgroup, "watch the memory of the cgroup with this folder")->type_name("DIR")->group(kGroup);
  scalar(app, "--json", a.json, "write the figures as JSON; - is stdout, the table then goes to stderr")
      ->type_name("FILE")
      ->group(kGroup);
  scalar(app, "--html", a.html, "write an HTML page with charts of the latencies and the time line")
      ->type_name("FILE")
      ->group(kGroup);
  app.add_flag("--quiet", a.quiet, "no progress")->group(kGroup);
}

bench::Endpoint endpoint_of(const std::string& text) {
  if (text == "completions" || text == "/v1/completions") return bench::Endpoint::completions;
  if (text == "chat" || text == "/v1/chat/completions") return bench::Endpoint::chat;
  throw Error(ErrorKind::usage, fmt::format("--endpoint {} is unknown", text), "give completions or chat");
}

double rate_of(const std::string& text) {
  char* end = nullptr;
  const double rate = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(rate > 0))
    throw Error(ErrorKind::usage, fmt::format("--request-rate {} is not a rate", text),
                "give a number of requests per second above 0, or inf");
  return rate;
}

void resolve(BenchArguments& a) {
  a.load.endpoint = endpoint_of(a.endpoint);
  a.load.request_rate = rate_of(a.rate);
  a.load.num_prompts = a.num_prompts.value_or(a.load.duration > 0 ? 0 : 1000);
  if (const char* key = std::getenv("OPENAI_API_KEY"); key && a.load.api_key.empty()) a.load.api_key = key;
  if (a.pid && !a.cgroup.empty())
    throw Error(ErrorKind::usage, "--pid and --cgroup are both given", "give one of them");
  bench::check_load(a.load);
}

std::optional<bench::MemoryWatch> memory_watch(const BenchArguments& a) {
  if (a.pid) return bench::MemoryWatch::of_process(*a.pid);
  if (!a.cgroup.empty()) return bench::MemoryWatch::of_cgroup(a.cgroup);
  return std::nullopt;
}

// Each request needs a connection.
void allow_many_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

// One line that is rewritten on a terminal; prints nothing elsewhere.
class LoadProgress {
 public:
  LoadProgress(bool quiet, int64_t total) : shown_(!quiet && ::isatty(STDERR_FILENO)), total_(total) {}
  ~LoadProgress() {
    if (shown_) write_stderr("\r\x1b[K");
  }
  LoadProgress(const LoadProgress&) = delete;
  LoadProgress& operator=(const LoadProgress&) = delete;

  void show(const bench::LoadSample& now) {
    if (!shown_) return;
    const double seconds = now.time - last_.time;
    const double rate = seconds > 0 ? static_cast<double>(now.pieces - last_.pieces) / seconds : 0;
    std::string text =
        fmt::format("{}  ended {}{}  running {}  failed {}  {:.0f} tok/s", format_duration(now.time), now.ended,
                    total_ > 0 ? fmt::format("/{}", total_) : "", now.running, now.failed, rate);
    last_ = now;
    text.resize(std::min(text.size(), terminal_columns(STDERR_FILENO) - 1));
    write_stderr("\r" + text + "\x1b[K");
  }

 private:
  bool shown_;
  int64_t total_;
  bench::LoadSample last_;
};

bench::LoadSummary measure(BenchArguments& a, bench::HttpCalls& calls, std::optional<bench::MemoryWatch>& memory) {
  if (a.load.model.empty()) a.load.model = bench::served_model(calls, a.load);
  const auto source = a.load.dataset.empty() ? bench::random_requests(a.load, bench::word_tokens(calls, a.load))
                                             : bench::file_requests(a.load);
  bench::warm_up(calls, a.load, *source);
  const RunControl& control =
      install_signal_handlers("\nstopping with what has been measured so far; a second signal exits at once\n");
  LoadProgress progress(a.quiet, a.load.num_prompts);
  bench::LoadHooks hooks{[&](const bench::LoadSample& sample) { progress.show(sample); },
                         [&] { return control.stop_signal != 0; }, memory ? &*memory : nullptr};
  const bench::LoadResult result = bench::run_load(calls, a.load, *source, hooks);
  if (memory) memory->sample();
  return bench::summarise(a.load, result, memory ? &*memory : nullptr);
}

int run_bench(BenchArguments& a) {
  resolve(a);
  std::optional<bench::MemoryWatch> memory = memory_watch(a);
  allow_many_files();
  bench::HttpCalls calls(bench::parse_address(a.load.base_url));
  const bench::LoadSummary summary = measure(a, calls, memory);
  const std::string table = bench::summary_table(summary);
  if (a.json == "-") {
    fmt::print("{}", bench::summary_json(summary));
    write_stderr(table);
  } else {
    fmt::print("{}", table);
    if (!a.json.empty()) write_output(a.json, bench::summary_json(summary));
  }
  if (!a.html.empty()) write_page(a.html, bench::summary_page(summary));
  if (summary.stopped) return 128 + SIGINT;
  return summary.completed() > 0 ? 0 : 1;
}

}  // namespace

Command bench_serve_command() {
  return {"bench-serve", "load an OpenAI server and measure its latencies and throughput", [](CLI::App& app) {
            auto a = std::make_shared<BenchArguments>();
            add_server(app, *a);
            add_load(app, *a);
            add_requests(app, *a);
            add_output(app, *a);
            return [a] { return run_bench(*a); };
          }};
}

}  // namespace headroom
