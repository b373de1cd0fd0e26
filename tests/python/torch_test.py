"""States of torch. Without torch there is nothing to test, and that is said."""
# C13
import unittest

import numpy
from support import Folder

import baton

try:
    import torch
except ImportError:
    torch = None


if torch is not None:
    class Elsewhere(torch.Tensor):
        """One whose parts lie with other ranks, as DTensor is."""

        def to_local(self):
            return torch.zeros(1)


@unittest.skipIf(torch is None, "python3-torch is not installed")
class Torch(Folder):
    def back(self, state):
        baton.save(self.folder, state)
        return baton.load(self.folder)

    def test_a_training_state_comes_back_in_three_lines(self):
        model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 1))
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(8, 4)).square().sum().backward()
            optimizer.step()
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "rng": torch.get_rng_state(), "step": 3}
        back = self.back(state)
        self.assertSame(state, back)
        fresh = torch.optim.AdamW(model.parameters(), lr=0.5)
        fresh.load_state_dict(back["optimizer"])
        self.assertSame(optimizer.state_dict(), fresh.state_dict())

    def test_every_dtype_comes_back(self):
        names = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 float8_e4m3fn float8_e5m2".split()
        state = {name: torch.arange(6).to(getattr(torch, name)) for name in names if hasattr(torch, name)}
        self.assertIn("bfloat16", state)
        self.assertSame(state, self.back(state))

    def test_tensors_of_every_layout_come_back(self):
        base = torch.arange(24.0).reshape(2, 3, 4)
        nan = torch.from_numpy(numpy.array([0x7FC00001, 0xFF800001], numpy.uint32).view(numpy.float32))
        state = {
            "transposed": base.transpose(0, 2), "strided": base[:, ::2, 1:], "expanded": torch.ones(1, 3).expand(4, 3),
            "view": base[1], "zero_dimensions": torch.tensor(5), "no_elements": torch.empty(0, 3), "nan": nan,
            "channels_last": torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
            "bf16": torch.randn(4, 4).bfloat16().t(), "leaf": torch.ones(2, requires_grad=True).detach(),
        }
        self.assertSame(state, self.back(state))

    def test_tied_weights_stay_tied(self):
        embedding = torch.nn.Embedding(5, 3)
        head = torch.nn.Linear(3, 5, bias=False)
        head.weight = embedding.weight
        back = self.back(torch.nn.ModuleList([embedding, head]).state_dict())
        self.assertEqual(back["0.weight"].data_ptr(), back["1.weight"].data_ptr())
        self.assertTrue(torch.equal(back["1.weight"], embedding.weight.detach()))

    def test_what_is_negated_on_its_way_is_not_tied(self):
        numbers = torch.tensor([1 + 2j, 3 + 4j])
        baton.save(self.folder, {"a": numbers.imag, "b": numbers.conj().imag})
        loaded = baton.load(self.folder)
        self.assertEqual((loaded["a"].tolist(), loaded["b"].tolist()), ([2, 4], [-2, -4]))

    def test_tensors_are_filled_where_they_are(self):
        baton.save(self.folder, {"a": torch.arange(6.0).reshape(2, 3), "b": torch.arange(4).bfloat16()})
        model = torch.nn.Parameter(torch.zeros(2, 3))
        wide = torch.zeros(4, 2, dtype=torch.bfloat16)
        baton.load(self.folder, into={"a": model, "b": wide[:, 1]})
        self.assertEqual(model.tolist(), [[0, 1, 2], [3, 4, 5]])
        self.assertEqual(wide.tolist(), [[0, 0], [0, 1], [0, 2], [0, 3]])

    def test_torch_and_numpy_read_each_other(self):
        baton.save(self.folder, {"w": torch.arange(4.0)})
        self.assertEqual(baton.load(self.folder, into={"w": numpy.zeros(4, numpy.float32)})["w"].tolist(), [0, 1, 2, 3])

    def test_one_without_memory_of_its_own_is_refused_by_name(self):
        freed = torch.zeros(2, 3)
        part, turned = freed[1:], freed.t()
        freed.storage().resize_(0)
        elsewhere = torch.Tensor._make_wrapper_subclass(Elsewhere, (2,))
        for name, value in {"freed": freed, "part": part, "turned": turned, "elsewhere": elsewhere}.items():
            for call in (baton.save, baton.save_async):
                with self.assertRaisesRegex(TypeError, f'"{name}" is a .* without memory of its own'):
                    call(self.folder, {"w": torch.zeros(2), name: value})
        baton.save(self.folder, {"freed": torch.ones(2, 3)})
        with self.assertRaisesRegex(TypeError, '"freed" is a Tensor without memory of its own'):
            baton.load(self.folder, into={"freed": freed})
        with self.assertRaisesRegex(TypeError, r"save its local part as `Shard\(x.to_local\(\), x.shape, offsets\)`"):
            baton.save(self.folder, {"x": elsewhere})

    @unittest.skipUnless(torch and torch.cuda.is_available(), "there is no GPU")
    def test_tied_weights_of_a_gpu_are_written_once(self):
        weight = torch.arange(4.0, device="cuda")
        baton.save(self.folder, {"a": weight, "b": weight, "host": weight.cpu()})
        self.assertEqual([name for name, _, _ in baton.checkpoints(self.folder)[0].tensors], ["a", "host"])
        back = baton.load(self.folder)
        self.assertEqual(back["a"].data_ptr(), back["b"].data_ptr())

    def test_what_a_file_cannot_hold_is_refused_by_name(self):
        for value, said in [(torch.zeros(2, dtype=torch.complex64), "complex64"), (torch.eye(3).to_sparse(), "sparse"),
                            (torch.empty(2, device="meta"), "meta"), (torch.nn.Linear(1, 1), "Linear"),
                            (torch.Size([1]), "Size")]:
            with self.assertRaisesRegex(TypeError, f'"net/x".*{said}'):
                baton.save(self.folder, {"net": {"x": value, "y": torch.zeros(1)}})


if __name__ == "__main__":
    unittest.main()
