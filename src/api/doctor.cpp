#include "headroom/doctor.h"

#include <sstream>

#include "api/translate.h"
#include "doctor/answer/answer.h"
#include "doctor/output/json.h"
#include "doctor/output/screen.h"

namespace headroom::api {
namespace {

doctor::Request request_of(const Question& question) {
  doctor::Request request;
  request.inputs = question.files;
  if (!question.text.empty()) request.inputs.emplace_back("-");
  request.configs = question.configs;
  request.command = question.command;
  request.model = question.model;
  request.parameters = question.parameters;
  request.gpu = question.gpu;
  if (question.gpus > 0) request.gpus = question.gpus;
  if (question.micro_batch_size > 0) request.micro_batch = question.micro_batch_size;
  if (question.max_seq_length > 0) request.sequence = question.max_seq_length;
  return request;
}

}  // namespace

Diagnosis explain(const Question& question) {
  return translating([&]() -> Diagnosis {
    std::istringstream text(question.text);
    const doctor::Answer answer = doctor::answer(request_of(question), text);
    return {doctor::screen(answer.report), doctor::details(answer.report), doctor::report_json(answer.report)};
  });
}

}  // namespace headroom::api
