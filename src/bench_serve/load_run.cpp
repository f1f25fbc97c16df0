#include "bench_serve/load_run.h"

#include <cmath>
#include <map>
#include <memory>

#include "base/error.h"
#include "bench_serve/answer_reader.h"
#include "bench_serve/arrivals.h"
#include "formats/json.h"

namespace headroom::bench {
namespace {

constexpr double kSampleSeconds = 0.25;
constexpr double kMostPauseSeconds = 10;

// How long a refused request keeps its place under max_concurrency.
double pause_after(const RequestRecord& record) {
  if (record.outcome == Outcome::unreachable) return 1;
  return record.outcome == Outcome::refused ? std::min(record.retry_seconds, kMostPauseSeconds) : 0;
}

// A small answer, read whole.
struct PlainAnswer {
  int status = 0;
  std::string body, error;
};

PlainAnswer plain_call(HttpCalls& calls, const LoadOptions& options, const std::string& path, const std::string& body) {
  constexpr size_t kMost = size_t{16} << 20;
  PlainAnswer answer;
  calls.ask(path, body, options.api_key, std::min(30.0, options.timeout),
            {[&](const AnswerHead& head) { answer.status = head.status; },
             [&](std::string_view bytes) {
               answer.body += bytes;
               return answer.body.size() < kMost;
             },
             [&](CallEnd end, const std::string& error) {
               if (end != CallEnd::whole) answer.error = error, answer.status = 0;
             }});
  calls.run();
  return answer;
}

// A request in progress.
struct Flight {
  explicit Flight(RequestRecord& to) : reader(to) {}
  AnswerReader reader;
  std::function<void()> cancel;
};

// The hooks of a request whose record starts now.
CallHooks hooks_of(HttpCalls& calls, double origin, const std::shared_ptr<Flight>& flight,
                   std::function<void()> ended) {
  return {[flight](const AnswerHead& head) { flight->reader.head(head); },
          [flight, &calls, origin](std::string_view bytes) { return flight->reader.body(bytes, calls.now() - origin); },
          [flight, &calls, origin, ended = std::move(ended)](CallEnd end, const std::string& error) {
            flight->reader.end(end, error, calls.now() - origin);
            ended();
          }};
}

class Load {
 public:
  Load(HttpCalls& calls, const LoadOptions& options, const RequestSource& source, const LoadHooks& hooks)
      : calls_(calls),
        options_(options),
        source_(source),
        hooks_(hooks),
        arrivals_(options.request_rate, options.burstiness, options.seed),
        origin_(calls.now()) {}

  LoadResult run() {
    if (at_once())
      begin_ready();
    else
      await_arrival();
    sample();
    calls_.run();
    for (auto& [index, record] : records_) result_.records.push_back(std::move(*record));
    for (const RequestRecord& record : result_.records) result_.seconds = std::max(result_.seconds, record.ended);
    return std::move(result_);
  }

 private:
  double now() const { return calls_.now() - origin_; }
  bool at_once() const { return std::isinf(options_.request_rate); }

  // Whether another request may arrive.
  bool goes_on() const {
    return !result_.stopped && (options_.num_prompts == 0 || arrived() < options_.num_prompts) &&
           (options_.duration == 0 || now() < options_.duration);
  }
  int64_t arrived() const { return count_.begun + waiting_; }
  bool has_place() const { return options_.max_concurrency == 0 || places_ < options_.max_concurrency; }
  bool is_over() const { return places_ == 0 && count_.running == 0 && waiting_ == 0 && !arriving_; }

  void await_arrival() {
    if (!goes_on()) return;
    next_arrival_ += arrivals_.next_gap();
    arriving_ = true;
    const double at = options_.duration > 0 ? std::min(next_arrival_, options_.duration) : next_arrival_;
    calls_.at(origin_ + at, [this] {
      arriving_ = false;
      if (!goes_on()) return;
      ++waiting_;
      begin_ready();
      await_arrival();
    });
  }

  void begin_ready() {
    while (has_place() && (at_once() ? goes_on() : waiting_ > 0)) {
      if (!at_once()) --waiting_;
      begin();
    }
  }

  void begin() {
    const int64_t index = count_.begun++;
    ++places_;
    result_.most_running = std::max(result_.most_running, ++count_.running);
    auto record = std::make_unique<RequestRecord>();
    record->begun = now();
    const auto flight = std::make_shared<Flight>(*record);
    RequestRecord& at = *(records_[index] = std::move(record));
    flights_[index] = flight;
    flight->cancel = calls_.ask(path_of(options_.endpoint), source_.body(index), options_.api_key, options_.timeout,
                                hooks_of(calls_, origin_, flight, [this, index, &at] { ended(index, at); }));
  }

  void ended(int64_t index, const RequestRecord& record) {
    flights_.erase(index);
    --count_.running;
    ++count_.ended;
    count_.failed += record.outcome != Outcome::completed;
    ended_pieces_ += record.pieces;
    const double pause = pause_after(record);
    if (pause == 0 || options_.max_concurrency == 0 || (waiting_ == 0 && !goes_on())) return free_place();
    calls_.at(calls_.now() + pause, [this] { free_place(); });
  }

  void free_place() {
    --places_;
    begin_ready();
  }

  void sample() {
    count_.time = now();
    count_.memory = hooks_.memory ? hooks_.memory->sample() : 0;
    count_.pieces = ended_pieces_;
    for (const auto& [index, flight] : flights_) count_.pieces += records_[index]->pieces;
    result_.samples.push_back(count_);
    if (hooks_.progress) hooks_.progress(count_);
    if (hooks_.should_end && !result_.stopped && hooks_.should_end()) stop();
    if (!is_over()) calls_.at(calls_.now() + kSampleSeconds, [this] { sample(); });
  }

  void stop() {
    result_.stopped = true;
    waiting_ = 0;
    const auto flights = flights_;  // their ends change the map
    for (const auto& [index, flight] : flights) flight->cancel();
    calls_.stop();  // nothing is timed any more
  }

  HttpCalls& calls_;
  const LoadOptions& options_;
  const RequestSource& source_;
  const LoadHooks& hooks_;
  Arrivals arrivals_;
  const double origin_;
  double next_arrival_ = 0;
  bool arriving_ = false;
  int64_t waiting_ = 0;  // arrived, not started
  int64_t places_ = 0;   // places of max_concurrency in use
  int64_t ended_pieces_ = 0;
  LoadSample count_;
  std::map<int64_t, std::unique_ptr<RequestRecord>> records_;
  std::map<int64_t, std::shared_ptr<Flight>> flights_;
  LoadResult result_;
};

}  // namespace

std::string served_model(HttpCalls& calls, const LoadOptions& options) {
  const PlainAnswer answer = plain_call(calls, options, "/v1/models", "");
  const auto fail = [&](const std::string& why, const char* remedy) {
    throw Error(ErrorKind::run, fmt::format("{}/v1/models: {}", options.base_url, why), remedy);
  };
  if (answer.status == 0) fail(answer.error, "start the server, or check --base-url");
  if (answer.status == 401 || answer.status == 403)
    fail(fmt::format("status {}", answer.status), "give the server's key with --api-key, or in OPENAI_API_KEY");
  const Json json = Json::parse(answer.body, nullptr, false);
  if (answer.status == 200 && json.is_object() && json.contains("data") && json["data"].is_array())
    for (const Json& model : json["data"])
      if (model.is_object() && model.contains("id") && model["id"].is_string()) return model["id"].get<std::string>();
  fail(fmt::format("status {}, and it names no model", answer.status), "name the model with --model");
  return {};
}

WordTokens word_tokens(HttpCalls& calls, const LoadOptions& options) {
  WordTokens words;
  const Json body = {{"model", options.model},
                     {"prompt", sample_words()},
                     {"content", sample_words()},  // llama.cpp's name
                     {"add_special_tokens", false}};
  const PlainAnswer answer = plain_call(calls, options, "/tokenize", body.dump());
  const Json json = answer.status == 200 ? Json::parse(answer.body, nullptr, false) : Json();
  if (!json.is_object() || !json.contains("tokens") || !json["tokens"].is_array()) return words;
  for (const Json& id : json["tokens"])
    if (id.is_number_integer() && id >= 0) words.ids.push_back(id.get<int64_t>());
  if (!words.ids.empty())
    words.tokens_per_word = static_cast<double>(words.ids.size()) / static_cast<double>(sample_word_count());
  return words;
}

void warm_up(HttpCalls& calls, const LoadOptions& options, const RequestSource& source) {
  for (int64_t i = 0; i < options.num_warmups; ++i) {
    RequestRecord record;
    const auto flight = std::make_shared<Flight>(record);
    calls.ask(path_of(options.endpoint), source.body(0), options.api_key, options.timeout,
              hooks_of(calls, calls.now(), flight, [] {}));
    calls.run();
    if (record.outcome != Outcome::completed)
      throw Error(ErrorKind::run,
                  fmt::format("the first request to {}{} failed: {}{}", options.base_url, path_of(options.endpoint),
                              record.status > 0 ? fmt::format("status {}, ", record.status) : "", record.message),
                  "fix the cause; --num-warmups 0 measures without a trial request first");
  }
}

LoadResult run_load(HttpCalls& calls, const LoadOptions& options, const RequestSource& source, const LoadHooks& hooks) {
  return Load(calls, options, source, hooks).run();
}

}  // namespace headroom::bench
