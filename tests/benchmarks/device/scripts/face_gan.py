# DCGAN-style training, with the usual prints and a look at the samples at every iteration
import sys
import torch
import torch.nn as nn

nz, ngf, batch_size, iters = 32, 48, 32, 420
fixed_run = "--fixed" in sys.argv
torch.manual_seed(999)
device = torch.device("cuda:0")

netG = nn.Sequential(
    nn.Linear(nz, ngf * 2), nn.BatchNorm1d(ngf * 2), nn.ReLU(True), nn.Linear(ngf * 2, 192), nn.Tanh()
).to(device)
netD = nn.Sequential(
    nn.Linear(192, ngf * 2), nn.LeakyReLU(0.2), nn.Linear(ngf * 2, ngf), nn.LeakyReLU(0.2), nn.Linear(ngf, 1)
).to(device)
criterion = nn.BCEWithLogitsLoss()
fixed_noise = torch.randn(batch_size, nz, device=device)
optimizerD = torch.optim.Adam(netD.parameters(), lr=2e-4, betas=(0.5, 0.999))
optimizerG = torch.optim.Adam(netG.parameters(), lr=2e-4, betas=(0.5, 0.999))
real_faces = torch.rand(2048, 192, device=device)
G_losses, D_losses = [], []

for i in range(iters):
    # discriminator
    netD.zero_grad()
    real = real_faces[torch.randint(0, 2048, (batch_size,), device=device)]
    output = netD(real).view(-1)
    errD_real = criterion(output, torch.ones_like(output))
    errD_real.backward()
    if not fixed_run:
        D_x = output.mean().item()
    fake = netG(torch.randn(batch_size, nz, device=device))
    output = netD(fake.detach()).view(-1)
    errD_fake = criterion(output, torch.zeros_like(output))
    errD_fake.backward()
    if not fixed_run:
        D_G_z1 = output.mean().item()
    optimizerD.step()
    # generator
    netG.zero_grad()
    output = netD(fake).view(-1)
    errG = criterion(output, torch.ones_like(output))
    errG.backward()
    optimizerG.step()
    if not fixed_run:
        D_losses.append((errD_real + errD_fake).item())
        G_losses.append(errG.item())
        samples = netG(fixed_noise).detach().cpu()
        print(
            f"[{i}/{iters}] D(x) {D_x:.3f} D(G(z)) {D_G_z1:.3f} loss_G {G_losses[-1]:.3f} {samples.mean():.3f}"
        )
    elif i % 50 == 0:
        print(f"[{i}/{iters}] loss_G {errG.item():.3f}")
