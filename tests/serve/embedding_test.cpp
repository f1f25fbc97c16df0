// Embeddings: requests, their JSON, and inputs that go to the scheduler a few at a time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "base/error.h"
#include "formats/json.h"
#include "serve/api_error.h"
#include "serve/embedding_answer.h"

namespace headroom::test {
namespace {

EmbeddingRequest read(const std::string& body) { return read_embedding_request(OrderedJson::parse(body), 512, 4); }

TEST(EmbeddingRequests, InputsAreTextsOrIdsOrListsOfThese) {
  EXPECT_EQ(read(R"({"input":"a"})").inputs.at(0).text, "a");
  EXPECT_EQ(read(R"({"input":["a","b"]})").inputs.size(), 2u);
  EXPECT_EQ(read(R"({"input":[1,2]})").inputs.at(0).ids, (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(read(R"({"input":[[1],[2,3]]})").inputs.at(1).ids, (std::vector<int32_t>{2, 3}));
  EXPECT_EQ(read(R"({"input":"a"})").dimensions, 4);
  EXPECT_TRUE(read(R"({"input":"a","encoding_format":"base64"})").base64);
}

TEST(EmbeddingRequests, WrongOnesNameTheField) {
  for (const auto& [body, param] : {std::pair{R"({})", "input"},
                                    {R"({"input":[]})", "input"},
                                    {R"({"input":[[]]})", "input"},
                                    {R"({"input":[512]})", "input"},
                                    {R"({"input":["a",1]})", "input"},
                                    {R"({"input":"a","dimensions":5})", "dimensions"},
                                    {R"({"input":"a","dimensions":0})", "dimensions"},
                                    {R"({"input":"a","encoding_format":"int8"})", "encoding_format"},
                                    {R"({"input":"a","model":5})", "model"}}) {
    try {
      read(body);
      ADD_FAILURE() << body;
    } catch (const ApiError& error) {
      EXPECT_EQ(error.status(), 400);
      EXPECT_EQ(error.param(), param) << body;
    }
  }
}

TEST(ModelPooling, IsAsTheModelsFilesSay) {
  const std::filesystem::path folder = testing::TempDir() + "pooling";
  std::filesystem::create_directories(folder / "1_Pooling");
  const auto says = [&](const std::string& text) { std::ofstream(folder / "1_Pooling" / "config.json") << text; };
  says(R"({"pooling_mode_cls_token":false,"pooling_mode_mean_tokens":true})");
  for (const bool encoder : {false, true}) EXPECT_EQ(model_pooling(folder, encoder), Pooling::mean);
  says(R"({"pooling_mode_lasttoken":true})");
  for (const bool encoder : {false, true}) EXPECT_EQ(model_pooling(folder, encoder), Pooling::last);
  says(R"({"pooling_mode_cls_token":true,"pooling_mode_mean_tokens":false})");
  EXPECT_EQ(model_pooling(folder, true), Pooling::first);
  for (const char* other : {R"({"pooling_mode_cls_token":true})", "[]", "{"}) {
    says(other);
    EXPECT_THROW(model_pooling(folder, false), ApiError) << other;
  }
  says(R"({"pooling_mode_max_tokens":true})");
  EXPECT_THROW(model_pooling(folder, true), ApiError);
  std::filesystem::remove_all(folder);
  EXPECT_EQ(model_pooling(folder, false), Pooling::last);
  EXPECT_EQ(model_pooling(folder, true), Pooling::mean);
}

TEST(EmbeddingTexts, AreOfLengthOneAlsoWhenCut) {
  const std::vector<float> state{3, 4, 12, 0};
  EXPECT_EQ(embedding_of(state, 2), (std::vector<float>{0.6f, 0.8f}));
  EXPECT_FLOAT_EQ(embedding_of(state, 4)[2], 12.0f / 13);
  EXPECT_EQ(embedding_of(std::vector<float>{0, 0}, 2), (std::vector<float>{0, 0}));
  EXPECT_THROW(embedding_of(std::vector<float>{NAN, 0}, 2), Error);
}

TEST(EmbeddingTexts, AreNumbersThatReadBackOrBase64) {
  const std::vector<float> values{1, -0.0f, 0.1f, -std::numeric_limits<float>::min(), 1.17549421e-38f, -1.2345678e-5f};
  const std::string text = embedding_text(values, false);
  const Json numbers = Json::parse(text);
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_TRUE(numbers[i].is_number_float()) << text;
    EXPECT_EQ(numbers[i].get<float>(), values[i]);
  }
  EXPECT_EQ(embedding_text(std::vector<float>{1}, true), "\"AACAPw==\"");
  EXPECT_EQ(embedding_text(std::vector<float>{1, 2}, true), "\"AACAPwAAAEA=\"");
  EXPECT_EQ(embedding_text(std::vector<float>{1, 2, 3}, true), "\"AACAPwAAAEAAAEBA\"");
  for (const int64_t count : {1, 2, 3, 50})
    for (const bool base64 : {false, true})
      EXPECT_LE(embedding_text(std::vector<float>(static_cast<size_t>(count), -1.17549435e-38f), base64).size(),
                static_cast<size_t>(embedding_text_bytes(count, base64)));
}

class KeptExchange : public HttpExchange {
 public:
  const HttpRequest& request() const override { return request_; }
  void send(int code, std::string, std::string text, HttpHeaders) override { status = code, body = std::move(text); }
  void begin_events(HttpHeaders) override {}
  void event(std::string) override {}
  void end_events(std::string) override {}
  void on_gone(std::function<void()>) override {}
  int status = 0;
  std::string body;

 private:
  HttpRequest request_;
};

std::shared_ptr<EmbeddingAnswer> an_answer(const std::shared_ptr<KeptExchange>& exchange, size_t inputs) {
  EmbeddingRequest request;
  request.model = "m";
  request.dimensions = 2;
  std::vector<std::vector<int32_t>> prompts(inputs, std::vector<int32_t>{1, 2, 3});
  return std::make_shared<EmbeddingAnswer>(exchange, std::move(request), std::move(prompts), Pooling::mean, nullptr);
}

TEST(EmbeddingAnswers, InputsGoToTheSchedulerSomeAtATime) {
  const auto exchange = std::make_shared<KeptExchange>();
  const auto answer = an_answer(exchange, EmbeddingAnswer::kAtOnce + 2);
  int asked = 0;
  float x = 0;
  for (const size_t expected : {EmbeddingAnswer::kAtOnce, size_t{2}}) {
    const std::vector<SequenceRequest> group = answer->next(7, [&] { ++asked; });
    ASSERT_EQ(group.size(), expected);
    for (const SequenceRequest& sequence : group) {
      EXPECT_EQ(exchange->status, 0);
      EXPECT_EQ(sequence.pooling, Pooling::mean);
      EXPECT_EQ(sequence.max_tokens, 0);
      sequence.listener->on_embedding(std::vector<float>{x++, 1});
      sequence.listener->on_end(SequenceEnd::length, 0, 0, {});
    }
  }
  EXPECT_EQ(asked, 1);
  ASSERT_EQ(exchange->status, 200);
  const Json body = Json::parse(exchange->body);
  EXPECT_EQ(body["data"].size(), EmbeddingAnswer::kAtOnce + 2);
  EXPECT_EQ(body["data"][33]["index"], 33);
  EXPECT_FLOAT_EQ(body["data"][33]["embedding"][1], 1 / std::sqrt(33.0f * 33 + 1));
  EXPECT_EQ(body["usage"]["prompt_tokens"], 3 * (static_cast<int>(EmbeddingAnswer::kAtOnce) + 2));
}

TEST(EmbeddingAnswers, OneThatFailsIsTheAnswersError) {
  const auto exchange = std::make_shared<KeptExchange>();
  const auto answer = an_answer(exchange, 2);
  const std::vector<SequenceRequest> group = answer->next(7, [] {});
  group[0].listener->on_end(SequenceEnd::failed, 0, 0, "the device is lost");
  EXPECT_EQ(exchange->status, 0);
  group[1].listener->on_end(SequenceEnd::length, 0, 0, {});
  EXPECT_EQ(exchange->status, 500);
  EXPECT_THAT(exchange->body, testing::HasSubstr("the device is lost"));
}

}  // namespace
}  // namespace headroom::test
