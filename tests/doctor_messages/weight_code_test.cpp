// Lines and frames that show that weights are read, made or moved; and the message of Theano.
#include "doctor/messages/weight_code.h"

#include <gtest/gtest.h>

#include "doctor/messages/log_scanner.h"
#include "doctor/messages/phase.h"

namespace headroom::doctor {
namespace {

TEST(WeightCode, AModelIsMoved) {
  for (const char* code : {"model.cuda()", "model = model.half().cuda()", "self.encoder.to(device)", "net_g.cuda(0)",
                           "netG = Generator(64).to(device)", "m = AutoModel.from_pretrained(name)",
                           "teacher_model.load_state_dict(state)", "state = torch.load(path)"})
    EXPECT_TRUE(moves_weights(code)) << code;
}

TEST(WeightCode, ABatchIsNot) {
  for (const char* code :
       {"images = images.cuda()", "x = torch.zeros(3).cuda()", "batch['input'].to(device)", "loss = Variable(x).cuda()",
        "optimizer.load_state_dict(state)", "torch.save(model.cpu().state_dict(), path)", "logits = logits.float()",
        "y = torch.FloatTensor(a).cuda()"})
    EXPECT_FALSE(moves_weights(code)) << code;
}

Frame frame_of(const char* function, const char* code) {
  Frame frame;
  frame.file = "/src/project/run.py";
  frame.function = function;
  frame.code = code;
  return frame;
}

TEST(WeightCode, AForeignScriptLoads) {
  EXPECT_EQ(phase_of({frame_of("main", "engine = prepare(args)"), frame_of("prepare", "model = model.half()")}).name,
            "load");
  EXPECT_EQ(phase_of({frame_of("main", "net = Net(args)"), frame_of("__init__", "self.block = Block(args)"),
                      frame_of("__init__", "self.weight = Parameter(torch.empty(n, m))")})
                .name,
            "load");
  EXPECT_EQ(
      phase_of({frame_of("train", "model = build(args).cuda()"), frame_of("cuda", "self.w = self.w.cuda(device)")})
          .name,
      "training")
      << "a function in lower case may make anything";
}

TEST(WeightCode, AStepDoesNotLoad) {
  EXPECT_EQ(phase_of({frame_of("train", "out = model(x)"), frame_of("forward", "x = x.cuda()")}).name, "forward");
  EXPECT_EQ(phase_of({frame_of("main", "run(model.cuda(), data)"), frame_of("run", "y = work(x)")}).name, "unknown");
  EXPECT_EQ(phase_of({frame_of("main", "loss.backward()")}).name, "backward");
}

TEST(Messages, OfTheano) {
  const LogReport report = scan_log(
      "MemoryError: Error allocating 411041792 bytes of device memory (out of memory). Driver report 191488000 bytes "
      "free and 2147483648 bytes total\n");
  ASSERT_EQ(report.messages.size(), 1u);
  const Message& message = report.messages[0];
  EXPECT_EQ(message.framework, "theano");
  EXPECT_EQ(message.requested_bytes, 411041792);
  EXPECT_EQ(message.free_bytes, 191488000);
  EXPECT_EQ(message.capacity_bytes, int64_t{2} << 30);
}

}  // namespace
}  // namespace headroom::doctor
