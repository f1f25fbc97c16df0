#include "serve/server.h"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "base/counter_random.h"
#include "base/error.h"
#include "serve/adapter_registry.h"
#include "serve/api_access.h"
#include "serve/api_error.h"
#include "serve/arena_state.h"
#include "serve/embedding_answer.h"
#include "serve/json_fields.h"
#include "serve/json_text.h"
#include "serve/logged_exchange.h"
#include "serve/message_request.h"
#include "serve/response_request.h"
#include "serve/server_metrics.h"
#include "serve/server_page.h"
#include "serve/text_answer.h"
#include "serve/worker.h"
#include "tokenizer/tokenizer_place.h"

namespace headroom {
namespace {

using ExchangeRef = std::shared_ptr<HttpExchange>;

constexpr size_t kMostJobs = 256;
constexpr double kDrainSeconds = 600;

HttpLimits http_limits(const ServerOptions& options, int64_t max_model_len) {
  HttpLimits limits;
  limits.connections = options.connections;
  limits.origins = options.origins;
  limits.header_bytes = 8 << 10;
  limits.body_bytes = EncoderLimits::of(max_model_len).body_bytes;
  limits.bodies_bytes = 4 * limits.body_bytes;
  limits.event_bytes = 32 << 10;
  limits.events_bytes = int64_t{1} << 20;
  limits.answers_bytes = (int64_t{1} << 20) + 32 * max_model_len;
  return limits;
}

int64_t seconds_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

void send_json(HttpExchange& exchange, const Json& json) { exchange.send(200, "application/json", json_text(json)); }

}  // namespace

// Threads: the HTTP server's thread answers what needs no model and passes the rest to the worker; the worker turns
// requests into sequences; the thread of run() adds them to the scheduler and steps.
class Server::Parts {
 public:
  enum class State : uint8_t { loading, ready, ending };

  Parts(ServerOptions options, const ServingPlan& plan)
      : options_(std::move(options)),
        plan_(plan),
        adapters_(
            plan.limits.adapters,
            {[this](const std::filesystem::path& directory) { model_->check_adapter(directory); },
             [this](int64_t slot, const std::filesystem::path& directory) { model_->load_adapter(slot, directory); }}),
        worker_(kMostJobs),
        http_(options_.address, http_limits(options_, plan.limits.positions),
              [this](ExchangeRef exchange) { handle(std::move(exchange)); }),
        thread_([this] {
          http_.run();
          http_ended_ = true;
          changed_.notify_one();
        }) {}

  ~Parts() {
    state_ = State::ending;
    worker_.stop();
    http_.stop();
    thread_.join();
  }

  std::string url() const { return http_.url(); }

  void run(ServedModel& model, const std::function<bool()>& should_end, const std::function<bool()>& should_reload) {
    TextEncoder encoder(model, EncoderLimits::of(plan_.limits.positions), options_.chat_template);
    Scheduler scheduler(model.runner(), scheduler_options(plan_.rule));
    model_ = &model;
    encoder_ = &encoder;
    has_chats_ = encoder.has_chats();
    scheduler_ = &scheduler;
    for (const NamedAdapter& adapter : options_.adapters) adapters_.load(adapter.name, adapter.directory);
    publish();
    state_ = State::ready;
    loop(should_end, should_reload);
    worker_.stop();  // before what its jobs use
    http_.stop();
    std::vector<std::function<void()>> dropped;
    take_mail(dropped);
    scheduler.fail_all("the server is shutting down");
  }

  static SchedulerOptions scheduler_options(AdmissionRule rule) {
    SchedulerOptions options;
    options.rule = rule;
    return options;
  }

 private:
  // A request before its answer exists.
  struct Flight {
    std::atomic<bool> gone{false};
    AdapterUse adapter;           // until all sequences have it
    std::vector<SequenceId> ids;  // those that may run; used by the stepping thread
  };

  void loop(const std::function<bool()>& should_end, const std::function<bool()>& should_reload) {
    std::vector<std::function<void()>> mail;
    while (true) {
      take_mail(mail);
      for (std::function<void()>& call : mail) call();
      mail.clear();
      const bool worked = scheduler_->step();
      publish();
      if (should_reload && should_reload()) adapters_.ask_reload();
      for (const std::string& line : adapters_.reload())
        if (options_.log) options_.log(line);
      if (state_ == State::ready && should_end()) {
        state_ = State::ending;
        http_.drain(kDrainSeconds);
      }
      if (worked) continue;
      if (state_ == State::ending && http_ended_) return;
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, std::chrono::milliseconds(50), [&] { return !mail_.empty() || http_ended_; });
    }
  }

  void publish() {
    metrics_.set(scheduler_->counts());
    high_water_ = model_->arena_high_water();
  }

  void take_mail(std::vector<std::function<void()>>& into) {
    const std::lock_guard lock(mutex_);
    into.swap(mail_);
  }

  void post(std::function<void()> call) {
    {
      const std::lock_guard lock(mutex_);
      mail_.push_back(std::move(call));
    }
    changed_.notify_one();
  }

  // On the HTTP server's thread.
  void handle(ExchangeRef plain) {
    // The page at / requests /arena twice a second: that is not worth a line each.
    const bool logged = options_.log && plain->request().path != "/arena";
    ExchangeRef exchange = logged ? std::make_shared<LoggedExchange>(std::move(plain), options_.log) : plain;
    guarded(exchange, [&] { route(exchange); });
  }

  template <typename Body>
  void guarded(const ExchangeRef& exchange, const Body& body) {
    try {
      body();
    } catch (const ApiError& error) {
      refuse(*exchange, error);
    } catch (const std::bad_alloc&) {
      refuse(*exchange, ApiError(503, "no memory is left for this request"));
    } catch (const std::exception& error) {
      refuse(*exchange, ApiError(500, error.what()));
    }
  }

  static void require_method(const HttpRequest& request, std::string_view method) {
    if (request.method != method && !(method == "GET" && request.method == "HEAD"))
      throw ApiError::wrong_method(fmt::format("{} takes {}, not {}", request.path, method, request.method),
                                   std::string(method));
  }

  void require_key(const HttpRequest& request) const {
    if (options_.api_keys.empty() || has_key(request.header("authorization"), options_.api_keys) ||
        is_key(request.header("x-api-key"), options_.api_keys))
      return;
    throw ApiError(401, "the API key is missing or wrong: send Authorization: Bearer KEY", {}, "invalid_api_key");
  }

  // OpenAI's path, also if a client's base URL does not end with /v1.
  static std::string versioned(const std::string& path) {
    for (const char* known :
         {"/completions", "/chat/completions", "/embeddings", "/responses", "/responses/input_tokens", "/models"})
      if (path == known) return "/v1" + path;
    return path;
  }

  void route(const ExchangeRef& exchange) {
    const HttpRequest& request = exchange->request();
    const std::string path = versioned(request.path);
    if (path == "/health" || path == "/ping") return health(*exchange);
    if (path == "/") return require_method(request, "GET"), send_page(*exchange);
    require_key(request);
    if (path == "/version")
      return require_method(request, "GET"), send_json(*exchange, {{"version", HEADROOM_VERSION}});
    if (path == "/metrics") return require_method(request, "GET"), metrics(*exchange);
    if (path == "/arena") return require_method(request, "GET"), arena(*exchange);
    if (path == "/v1/models" || path.starts_with("/v1/models/"))
      return require_method(request, "GET"), models(*exchange);
    const auto work = worker_route(path);
    if (!work) throw ApiError(404, fmt::format("there is nothing at {}", path));
    require_method(request, "POST");
    require_ready();
    const auto job = [this, exchange, work] { guarded(exchange, [&] { (this->*work)(exchange); }); };
    if (!worker_.add(job)) throw ApiError(503, "too many requests are waiting to be read");
  }

  void require_ready() const {
    if (state_ == State::loading) throw ApiError(503, "the model is being loaded");
    if (state_ == State::ending) throw ApiError(503, "the server is shutting down");
  }

  using Work = void (Parts::*)(const ExchangeRef&);
  static Work worker_route(const std::string& path) {
    if (path == "/v1/completions") return &Parts::complete;
    if (path == "/v1/chat/completions") return &Parts::chat;
    if (path == "/v1/embeddings") return &Parts::embed;
    if (path == "/v1/responses") return &Parts::respond;
    if (path == "/v1/responses/input_tokens") return &Parts::count_response;
    if (path == "/v1/messages") return &Parts::message;
    if (path == "/v1/messages/count_tokens") return &Parts::count_tokens;
    if (path == "/tokenize") return &Parts::tokenize;
    if (path == "/detokenize") return &Parts::detokenize;
    if (path == "/v1/load_lora_adapter") return &Parts::load_adapter;
    if (path == "/v1/unload_lora_adapter") return &Parts::unload_adapter;
    return nullptr;
  }

  void health(HttpExchange& exchange) const {
    require_method(exchange.request(), "GET");
    require_ready();
    send_json(exchange, {{"status", "ok"}});
  }

  void metrics(HttpExchange& exchange) const {
    exchange.send(200, "text/plain; version=0.0.4; charset=utf-8", metrics_.text(&plan_, high_water_));
  }

  void arena(HttpExchange& exchange) const {
    const State state = state_;
    ArenaState now;
    now.state = state == State::loading ? "loading" : state == State::ready ? "ready" : "ending";
    now.models = options_.names;
    now.chat_template = has_chats_;
    now.arena_high_water = high_water_;
    now.counts = metrics_.counts();
    exchange.send(200, "application/json", arena_json(plan_, now));
  }

  Json model_json(const std::string& name) const {
    return {{"id", name},
            {"object", "model"},
            {"created", begun_},
            {"owned_by", "headroom"},
            {"root", options_.names[0]},
            {"parent", nullptr},
            {"max_model_len", plan_.limits.positions}};
  }

  Json adapter_json(const ServedAdapter& adapter) const {
    Json json = model_json(adapter.name);
    json["root"] = adapter.directory.string();
    json["parent"] = options_.names[0];
    return json;
  }

  bool is_base(const std::string& name) const {
    return std::find(options_.names.begin(), options_.names.end(), name) != options_.names.end();
  }

  void require_model(const std::string& name) const {
    if (name.empty() || is_base(name) || adapters_.find(name)) return;
    throw ApiError(404, fmt::format("there is no model {} here; the name is {}", Json(name).dump(), options_.names[0]),
                   "model", "model_not_found");
  }

  void models(HttpExchange& exchange) const {
    constexpr std::string_view kList = "/v1/models";
    const std::string path = versioned(exchange.request().path);
    if (path.size() > kList.size() + 1) {
      const std::string name = path.substr(kList.size() + 1);
      if (const AdapterUse adapter = adapters_.find(name)) return send_json(exchange, adapter_json(*adapter));
      require_model(name);
      return send_json(exchange, model_json(name));
    }
    Json data = Json::array();
    for (const std::string& name : options_.names) data.push_back(model_json(name));
    for (const AdapterUse& adapter : adapters_.all()) data.push_back(adapter_json(*adapter));
    send_json(exchange, {{"object", "list"}, {"data", std::move(data)}});
  }

  // On the worker's thread.
  void complete(const ExchangeRef& exchange) { make_text(TextApi::completion, exchange); }
  void chat(const ExchangeRef& exchange) { make_text(TextApi::chat, exchange); }
  void respond(const ExchangeRef& exchange) { make_text(TextApi::response, exchange); }
  void message(const ExchangeRef& exchange) { make_text(TextApi::message, exchange); }

  TextRequest read_request(TextApi api, const ExchangeRef& exchange) const {
    const OrderedJson body = parse_body(exchange->request().body, most_values_);
    const int64_t vocab = plan_.limits.vocab;
    switch (api) {
      case TextApi::response:
        return read_response_request(body, vocab);
      case TextApi::message:
        return read_message_request(body, vocab, false);
      default:
        return read_text_request(api, body, vocab);
    }
  }

  // Cancels the request when the client leaves.
  std::shared_ptr<Flight> begin_flight(HttpExchange& exchange) {
    auto flight = std::make_shared<Flight>();
    exchange.on_gone([this, flight] {
      flight->gone = true;
      post([this, flight] { cancel(*flight); });
    });
    return flight;
  }

  void make_text(TextApi api, const ExchangeRef& exchange) {
    if (plan_.limits.whole_sequences)
      throw ApiError(
          400, fmt::format("{} is an encoder: it makes embeddings and no text; ask /v1/embeddings", options_.names[0]),
          "model");
    const std::shared_ptr<Flight> flight = begin_flight(*exchange);
    if (flight->gone) return;
    TextRequest request = read_request(api, exchange);
    flight->adapter = adapters_.find(request.model);
    if (!flight->adapter) require_model(request.model);
    std::shared_ptr<void> held;
    EncodedText encoded = encoder_->encode(request, held);
    request.drop_sources();
    auto answer = std::make_shared<TextAnswer>(exchange, next_head(api, request), std::move(request),
                                               std::move(encoded), model_->tokenizer(), metrics_, std::move(held));
    post([this, flight, answer, exchange] { guarded(exchange, [&] { admit(*flight, answer); }); });
  }

  void embed(const ExchangeRef& exchange) {
    const std::shared_ptr<Flight> flight = begin_flight(*exchange);
    if (flight->gone) return;
    EmbeddingRequest request = read_embedding_request(parse_body(exchange->request().body, most_values_),
                                                      plan_.limits.vocab, plan_.limits.hidden);
    flight->adapter = adapters_.find(request.model);
    if (!flight->adapter) require_model(request.model);
    if (request.model.empty()) request.model = options_.names[0];
    std::shared_ptr<void> held;
    auto prompts = encoder_->encode_inputs(request, held);
    request.inputs.clear();
    auto answer = std::make_shared<EmbeddingAnswer>(
        exchange, std::move(request), std::move(prompts),
        model_pooling(model_->files().directory, plan_.limits.whole_sequences), std::move(held));
    post([this, flight, answer] { guarded(answer->exchange(), [&] { feed(flight, answer); }); });
  }

  AnswerHead next_head(TextApi api, const TextRequest& request) {
    static constexpr const char* kPrefixes[] = {"cmpl-", "chatcmpl-", "resp_", "msg_"};  // indexed by TextApi
    const uint64_t number = mix64(static_cast<uint64_t>(begun_) * 1000003 + ++answers_);
    const std::string key = fmt::format("{:016x}{:08x}", number, answers_);
    return {api, kPrefixes[static_cast<size_t>(api)] + key, key,
            request.model.empty() ? options_.names[0] : request.model, seconds_now()};
  }

  OrderedJson worker_body(const ExchangeRef& exchange) const {
    OrderedJson body = parse_body(exchange->request().body, most_values_);
    require_model(JsonFields(body).text("model").value_or(""));
    return body;
  }

  void tokenize(const ExchangeRef& exchange) {
    const OrderedJson body = worker_body(exchange);
    const JsonFields fields(body);
    std::vector<int32_t> ids;
    if (fields.find("messages")) {
      const OrderedJson* tools = fields.array("tools");
      ids = encoder_->chat_tokens(read_messages(fields), tools ? *tools : OrderedJson(), read_chat_form(fields));
    } else if (const std::optional<std::string> text = fields.text("prompt")) {
      ids = encoder_->tokens_of(*text, fields.flag("add_special_tokens").value_or(true));
    } else if (const std::optional<std::string> content = fields.text("content")) {  // llama.cpp's names and default
      ids = encoder_->tokens_of(*content, fields.flag("add_special").value_or(false));
    } else {
      fields.refuse("prompt", "is missing, and so are messages");
    }
    send_json(*exchange, {{"count", ids.size()}, {"max_model_len", plan_.limits.positions}, {"tokens", ids}});
  }

  void count_tokens(const ExchangeRef& exchange) {
    const TextRequest request = read_message_request(worker_body(exchange), plan_.limits.vocab, true);
    const auto ids = encoder_->chat_tokens(request.messages, request.tools, request.form, request.prefill);
    send_json(*exchange, {{"input_tokens", ids.size()}});
  }

  void count_response(const ExchangeRef& exchange) {
    const TextRequest request = read_response_request(worker_body(exchange), plan_.limits.vocab);
    const auto ids = encoder_->chat_tokens(request.messages, request.tools, request.form);
    send_json(*exchange, {{"object", "response.input_tokens"}, {"input_tokens", ids.size()}});
  }

  void detokenize(const ExchangeRef& exchange) {
    const OrderedJson body = worker_body(exchange);
    const JsonFields fields(body);
    const OrderedJson* tokens = fields.array("tokens");
    if (!tokens) fields.refuse("tokens", "are missing");
    std::vector<int32_t> ids;
    for (const OrderedJson& id : *tokens) {
      if (!id.is_number_integer() || id < 0 || id >= plan_.limits.vocab)
        fields.refuse("tokens", fmt::format("must be from 0 to {}", plan_.limits.vocab - 1));
      ids.push_back(id.get<int32_t>());
    }
    send_json(*exchange, {{"prompt", model_->tokenizer().decode(ids)}});
  }

  // Reading files that a request names is a risk, so it must be enabled.
  void require_adapters() const {
    if (plan_.limits.adapters == 0)
      throw ApiError(400, "no slots for adapters were planned: start with --enable-lora --max-loras N");
    if (!options_.runtime_adapters)
      throw ApiError(403, "requests may not load adapters: start with --allow-runtime-lora or --lora-root DIR");
  }

  std::filesystem::path adapter_directory(const std::string& said) const {
    namespace fs = std::filesystem;
    std::error_code none;
    if (options_.adapter_root.empty()) return said;
    const fs::path root = fs::weakly_canonical(options_.adapter_root, none),
                   found = fs::weakly_canonical(root / said, none);
    const fs::path below = found.lexically_relative(root);
    if (below.empty() || *below.begin() == "..")
      throw ApiError(403, fmt::format("{} is not below --lora-root {}", said, root.string()), "lora_path");
    return found;
  }

  void load_adapter(const ExchangeRef& exchange) {
    constexpr size_t kMostName = 256, kMostPath = 4096;
    require_adapters();
    const OrderedJson body = parse_body(exchange->request().body, most_values_);
    const JsonFields fields(body);
    const std::string name = fields.text("lora_name").value_or(""), path = fields.text("lora_path").value_or("");
    if (name.empty() || path.empty()) throw ApiError(400, "Both 'lora_name' and 'lora_path' must be provided.");
    if (name.size() > kMostName || path.size() > kMostPath)
      throw ApiError(400, fmt::format("lora_name has at most {} bytes, lora_path {}", kMostName, kMostPath));
    if (is_base(name)) throw ApiError(400, fmt::format("{} is the name of the model", Json(name).dump()), "lora_name");
    const bool in_place = fields.flag("load_inplace").value_or(false);
    const std::filesystem::path directory = adapter_directory(path);
    std::error_code none;
    if (!std::filesystem::is_regular_file(directory / "adapter_config.json", none))
      throw ApiError(404, fmt::format("No adapter found for {}", path), "lora_path");
    post([this, exchange, name, directory, in_place] {
      guarded(exchange, [&] {
        const bool there = adapters_.find(name) != nullptr;
        if (there && !in_place)
          throw ApiError(400, fmt::format("The lora adapter '{}' has already been loaded. If you want to load the "
                                          "adapter in place, set 'load_inplace' to True.",
                                          name));
        fill_slot([&] { there ? adapters_.replace(name, directory) : adapters_.load(name, directory); });
        say(*exchange, fmt::format("Success: LoRA adapter '{}' added successfully.", name));
      });
    });
  }

  // Errors in an adapter's files are the request's error.
  template <typename Body>
  static void fill_slot(const Body& body) {
    try {
      body();
    } catch (const Error& error) {
      throw ApiError(error.kind() == ErrorKind::run ? 500 : 400, fmt::format("{}: {}", error.what(), error.remedy()));
    }
  }

  static void say(HttpExchange& exchange, std::string text) {
    exchange.send(200, "text/plain; charset=utf-8", std::move(text));
  }

  void unload_adapter(const ExchangeRef& exchange) {
    require_adapters();
    const OrderedJson body = parse_body(exchange->request().body, most_values_);
    const std::string name = JsonFields(body).text("lora_name").value_or("");
    if (name.empty()) throw ApiError(400, "either 'lora_name' and 'lora_int_id' needs to be provided.");
    post([this, exchange, name] {
      guarded(exchange, [&] {
        if (!adapters_.unload(name)) throw ApiError(404, fmt::format("The lora adapter '{}' cannot be found.", name));
        say(*exchange, fmt::format("Success: LoRA adapter '{}' removed successfully.", name));
      });
    });
  }

  // On the thread of run().
  void admit(Flight& flight, const std::shared_ptr<TextAnswer>& answer) {
    if (flight.gone) return;
    std::vector<SequenceId> ids;
    const uint64_t client = hash_text(answer->exchange().request().client);
    std::vector<SequenceRequest> sequences = answer->sequences(client);
    for (SequenceRequest& sequence : sequences) sequence.adapter = sequence_adapter(flight.adapter);
    flight.adapter.reset();
    switch (scheduler_->add(std::move(sequences), ids)) {
      case Admission::taken:
        flight.ids = ids;
        return answer->admitted(std::move(ids));
      case Admission::never_fits:
        return answer->refused(400, fmt::format("{} tokens were requested; the KV pool holds {}, a sequence at most {}",
                                                tokens_asked(*answer), plan_.pool_tokens(), plan_.limits.positions));
      case Admission::queue_full:
        return answer->refused(503, "too many sequences are waiting");
    }
  }

  // Gives the scheduler the next inputs of an answer; the others follow when these have ended.
  void feed(const std::shared_ptr<Flight>& flight, const std::shared_ptr<EmbeddingAnswer>& answer) {
    if (flight->gone) return;
    const uint64_t client = hash_text(answer->exchange()->request().client);
    const int64_t longest = answer->longest_prompt();
    const auto more = [this, flight, weak = std::weak_ptr(answer)] {
      post([this, flight, kept = weak.lock()] { guarded(kept->exchange(), [&] { feed(flight, kept); }); });
    };
    std::vector<SequenceRequest> inputs = answer->next(client, more);
    for (SequenceRequest& input : inputs) input.adapter = sequence_adapter(flight->adapter);
    switch (scheduler_->add(std::move(inputs), flight->ids)) {
      case Admission::taken:
        return;
      case Admission::never_fits:
        return answer->refused(
            400, fmt::format("an input has {} tokens; the KV pool holds {}", longest, plan_.pool_tokens()));
      case Admission::queue_full:
        return answer->refused(503, "too many sequences are waiting");
    }
  }

  static int64_t tokens_asked(const TextAnswer& answer) {
    size_t longest = 0;
    for (const auto& prompt : answer.encoded().prompts) longest = std::max(longest, prompt.size());
    return static_cast<int64_t>(longest) + answer.encoded().max_tokens;
  }

  void cancel(Flight& flight) {
    for (const SequenceId id : flight.ids) scheduler_->cancel(id);
  }

  const ServerOptions options_;
  const ServingPlan& plan_;
  const int64_t begun_ = seconds_now();
  const int64_t most_values_ = EncoderLimits::of(plan_.limits.positions).body_values;
  std::atomic<State> state_{State::loading};
  std::atomic<bool> http_ended_{false};
  std::atomic<int64_t> high_water_{0};
  std::atomic<bool> has_chats_{false};
  uint64_t answers_ = 0;  // used by the worker
  ServerMetrics metrics_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::function<void()>> mail_;
  ServedModel* model_ = nullptr;  // these three are set before state_ is ready
  TextEncoder* encoder_ = nullptr;
  Scheduler* scheduler_ = nullptr;
  AdapterRegistry adapters_;
  Worker worker_;
  HttpServer http_;
  std::thread thread_;
};

void Server::book(const InferenceOptions& options, const ServerOptions& server, ServingOptions& serving) {
  constexpr int64_t kThreads = 3 * (int64_t{1} << 20);  // code and stacks of three threads, JSON and HTTP
  constexpr int64_t kAdapterBytes = 16 << 10;           // names, paths, the loader
  constexpr int64_t kAnswerBytes = 64;  // per token of the longest text: its JSON, and the events that end a response
  const int64_t tokenizer_file = tokenizer_file_bytes(tokenizer_place(options.model));
  const AdmissionRule rule = serving.admission == "balanced" ? AdmissionRule::balanced : AdmissionRule::guaranteed;
  serving.outside = [server, tokenizer_file, rule](const StepLimits& limits) {
    return kThreads + http_limits(server, limits.positions).memory_bytes() +
           EncoderLimits::of(limits.positions).memory_bytes(tokenizer_file) +
           Scheduler::memory_bytes(limits, Parts::scheduler_options(rule)) + kAdapterBytes * limits.adapters +
           kAnswerBytes * limits.positions;
  };
}

Server::Server(const ServerOptions& options, const ServingPlan& plan)
    : parts_(std::make_unique<Parts>(options, plan)) {}
Server::~Server() = default;
std::string Server::url() const { return parts_->url(); }
void Server::run(ServedModel& model, const std::function<bool()>& should_end,
                 const std::function<bool()>& should_reload) {
  parts_->run(model, should_end, should_reload);
}

}  // namespace headroom
