"""The model knows its networks, its losses and how to make one update."""

from abc import ABC, abstractmethod
from collections import OrderedDict
from pathlib import Path

import torch
from torch import nn

from facade_kit.networks import GANLoss, NLayerDiscriminator, UnetGenerator, init_net


class BaseModel(ABC):
    model_names = ()
    loss_names = ()

    def __init__(self, opt):
        self.opt = opt
        self.optimizers = []

    @abstractmethod
    def optimize_parameters(self): ...

    def setup(self):
        def rate(epoch):
            return 1.0 - max(0, epoch + 1 - self.opt.n_epochs) / (self.opt.n_epochs_decay + 1)

        self.schedulers = [torch.optim.lr_scheduler.LambdaLR(one, rate) for one in self.optimizers]

    def update_learning_rate(self):
        for scheduler in self.schedulers:
            scheduler.step()

    def set_requires_grad(self, net, requires_grad):
        for param in net.parameters():
            param.requires_grad = requires_grad

    def get_current_losses(self):
        return OrderedDict((name, float(getattr(self, f"loss_{name}"))) for name in self.loss_names)

    def save_networks(self, suffix):
        for name in self.model_names:
            path = Path(self.opt.checkpoints_dir) / f"{suffix}_net_{name}.pth"
            torch.save(getattr(self, f"net{name}").state_dict(), path)


class Pix2PixModel(BaseModel):
    model_names = ("G", "D")
    loss_names = ("G_GAN", "G_L1", "D_real", "D_fake")

    def __init__(self, opt):
        super().__init__(opt)
        self.netG = init_net(UnetGenerator(opt.ngf))
        self.netD = init_net(NLayerDiscriminator(opt.ndf))
        self.criterionGAN = GANLoss()
        self.criterionL1 = nn.L1Loss()
        adam = {"lr": opt.lr, "betas": (opt.beta1, 0.999), "fused": True}
        self.optimizer_G = torch.optim.Adam(self.netG.parameters(), **adam)
        self.optimizer_D = torch.optim.Adam(self.netD.parameters(), **adam)
        self.optimizers = [self.optimizer_G, self.optimizer_D]

    def set_input(self, data):
        self.real_A, self.real_B = data["A"], data["B"]

    def forward(self):
        self.fake_B = self.netG(self.real_A)

    def backward_D(self):
        fake_B = self.fake_B.detach() if self.opt.fixed else self.fake_B
        pred_fake = self.netD(torch.cat((self.real_A, fake_B), 1))
        self.loss_D_fake = self.criterionGAN(pred_fake, False)
        pred_real = self.netD(torch.cat((self.real_A, self.real_B), 1))
        self.loss_D_real = self.criterionGAN(pred_real, True)
        loss_D = (self.loss_D_fake + self.loss_D_real) * 0.5
        loss_D.backward(retain_graph=not self.opt.fixed)

    def backward_G(self):
        pred_fake = self.netD(torch.cat((self.real_A, self.fake_B), 1))
        self.loss_G_GAN = self.criterionGAN(pred_fake, True)
        self.loss_G_L1 = self.criterionL1(self.fake_B, self.real_B) * self.opt.lambda_L1
        (self.loss_G_GAN + self.loss_G_L1).backward()

    def optimize_parameters(self):
        self.forward()
        self.set_requires_grad(self.netD, True)
        self.optimizer_D.zero_grad()
        self.backward_D()
        self.optimizer_D.step()
        self.set_requires_grad(self.netD, False)
        self.optimizer_G.zero_grad()
        self.backward_G()
        self.optimizer_G.step()


MODELS = {"pix2pix": Pix2PixModel}


def create_model(opt):
    model = MODELS[opt.model](opt)
    model.setup()
    return model
